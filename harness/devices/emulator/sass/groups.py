"""Where every lane stands, and with whom: lanes that split stay split until a barrier joins them.

Each group of lanes issues its own instructions, its BSYNC too: what a group waits for is not a
place in the code but the lanes that its BSSY named. Who waits stands at its BSYNC, and the last to
come takes all of them past it. If the last one goes instead, by EXIT or BREAK, those that wait
issue their BSYNC once more, as one group. Of the two sides of a branch the smaller goes first, of
equal ones the one that does not jump. 16 launches on an H200 decided that (tests/parting.py). Which
of several that were put aside goes next they leave open; here it is the smallest, then the latest.

A group is known by its lowest lane, so counting groups is counting lanes that lead one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness.devices.emulator.threads import DONE, WARP, Lanes, uniform

LANE: Final = np.arange(WARP, dtype=np.int64)
IDLE: Final = 0
NOWHERE: Final = -1
NEVER: Final = 1 << 62
BY_MASK: Final = 1 << 62  # a wait for the lanes of a mask, apart from the waits for a barrier

Ids = NDArray[np.int64]


class Stuck(Exception):
    """No lane can go on; `lanes` wait for lanes that never come."""

    def __init__(self, reason: str, lanes: Lanes) -> None:
        super().__init__(reason)
        self.lanes = lanes


class Groups:
    """The threads of some blocks as arrays that broadcast to (blocks, warps, 32).

    Attributes
    ----------
    pc
        Offset of the basic block where a lane stands, DONE when it has left.
    leader
        The lowest lane of its group.
    turn
        The lowest in a warp goes first: the smallest group, of equal ones the one made last.
    waiting
        What a lane waits for, IDLE if for nothing.
    member
        By barrier register: the BSSY that a lane is to meet again, IDLE if none.
    """

    def __init__(self, blocks: int, size: int) -> None:
        self.blocks = blocks
        warps = -(-size // WARP)
        self.index: Ids = np.arange(warps * WARP, dtype=np.int64).reshape(1, warps, WARP)
        self.pc = np.where(self.index < size, np.int64(0), np.int64(DONE))
        self.leader: Ids = np.zeros_like(self.index)
        self.turn: Ids = np.zeros_like(self.index)
        self.waiting: Ids = np.zeros_like(self.index)
        self.member: dict[str, Ids] = {}
        self._joined = self._made = 0

    @property
    def running(self) -> Lanes:
        """The lanes that have not left."""
        return np.not_equal(self.pc, DONE)

    def next(self) -> tuple[int, Lanes] | None:
        """Return a place, and the lanes there whose turn it is in their warp; None if all are done.

        Raises
        ------
        Stuck
            Lanes wait for each other.
        """
        self.pc = uniform(self.pc)
        turn = np.where(self.running & (self.waiting == IDLE), self.turn, NEVER)
        first = (turn != NEVER) & (turn == turn.min(axis=-1, keepdims=True))
        place = np.where(first, self.pc, NOWHERE)
        if (highest := int(place.max())) != NOWHERE:
            return highest, uniform(place == highest)
        if (stuck := self.waiting != IDLE).any():
            raise Stuck("lanes wait for lanes that never come", stuck)
        return None

    def count(self, lanes: Lanes) -> NDArray[np.int64]:
        """Return how many groups `lanes` are, by row."""
        led: NDArray[np.int64] = (lanes & (self.leader == LANE)).sum(axis=(1, 2))
        return led

    def go(self, offset: int, lanes: Lanes) -> None:
        """Send `lanes` to a place."""
        self.pc = np.where(lanes, np.int64(offset), self.pc)

    def split(self, lanes: Lanes, goal: Mapping[int, Lanes]) -> None:
        """Send `lanes` apart; those of one group that go to different places become groups."""
        for offset, part in goal.items():
            self.go(offset, part)
        parts = [part for part in goal.values() if part.any()]
        if len(parts) > 1:
            places = [part.any(axis=-1).astype(np.int64) for part in parts]
            mixed = np.greater(sum(places[1:], places[0]), 1)
            for part in parts:
                self._lead(part & mixed[..., None], self.leader)

    def leave(self, lanes: Lanes) -> None:
        """End the threads in `lanes`: nobody waits for them any more."""
        for barrier in self.member:
            self._remove(barrier, lanes)
        self._gather()

    def join(self, barrier: str, lanes: Lanes) -> None:
        """BSSY: the lanes of each group are to meet again."""
        self._joined += 1
        ids = self._joined * WARP + self.leader
        self.member[barrier] = np.where(lanes, ids, self._members(barrier))

    def forget(self, barrier: str, lanes: Lanes) -> None:
        """BREAK: these will not come; who waited for them alone issues its BSYNC again."""
        self._remove(barrier, lanes)
        self._gather()

    def wait(self, barrier: str, lanes: Lanes, after: int) -> None:
        """BSYNC: wait for all that joined, then go on.

        Raises
        ------
        Stuck
            Some of them did not join.
        """
        members = self._members(barrier)
        if (strangers := lanes & (members == IDLE)).any():
            raise Stuck(f"lanes wait at {barrier} that never joined it", strangers)
        self.waiting = np.where(lanes, members, self.waiting)
        met = self._gather()
        self._remove(barrier, met)
        self.go(after, met)

    def wait_for(self, mask: Ids, lanes: Lanes, after: int) -> None:
        """WARPSYNC: wait for the lanes of a mask, then go on."""
        self.waiting = np.where(lanes, BY_MASK | mask, self.waiting)
        self.go(after, self._gather())

    def _members(self, barrier: str) -> Ids:
        return self.member.get(barrier, np.zeros_like(self.index))

    def _remove(self, barrier: str, lanes: Lanes) -> None:
        self.member[barrier] = np.where(lanes, np.int64(IDLE), self._members(barrier))

    def _gather(self) -> Lanes:
        """Make those that wait for nobody still on the way a group that waits no more."""
        waiting, running = self.waiting, self.running[..., None, :]
        free: Lanes = waiting != IDLE
        if free.any():
            there = waiting[..., None, :] == waiting[..., :, None]
            for awaited in self._awaited(waiting):
                free = free & ~(awaited & running & ~there).any(axis=-1)
            self._check_together(free, waiting)
            self._lead(free, waiting)
            self.waiting = uniform(np.where(free, np.int64(IDLE), waiting))
        return free

    def _awaited(self, waiting: Ids) -> list[Lanes]:
        """Return, for each way to wait, which lanes (last axis) each lane awaits."""
        at_barriers = [
            (waiting[..., :, None] == members[..., None, :]) & (waiting != IDLE)[..., None]
            for members in self.member.values()
        ]
        masked = (waiting & BY_MASK) != 0
        named = (waiting[..., :, None] >> LANE & 1).astype(bool) & masked[..., None]
        return [*at_barriers, named]

    def _check_together(self, free: Lanes, waiting: Ids) -> None:
        """Lanes that meet must go on from one place, or this is no convergence known here."""
        same = (waiting[..., None, :] == waiting[..., :, None]) & free[..., None, :]
        apart = same & (self.pc[..., None, :] != self.pc[..., :, None]) & free[..., :, None]
        if apart.any():
            raise Stuck("lanes that meet would go on from different places", apart.any(-1))

    def _lead(self, lanes: Lanes, key: Ids) -> None:
        """Make each set of `lanes` of one warp with the same key a group."""
        self._made += 1
        lanes, key, leader, turn = np.broadcast_arrays(lanes, key, self.leader, self.turn)
        leader, turn, rows = leader.copy(), turn.copy(), lanes.any(axis=-1)
        chosen, keys = lanes[rows], key[rows]
        mates = (keys[:, None, :] == keys[:, :, None]) & chosen[:, None, :]
        leader[rows] = np.where(chosen, mates.argmax(axis=-1), leader[rows])
        turn[rows] = np.where(chosen, (mates.sum(axis=-1) << 32) - self._made, turn[rows])
        self.leader, self.turn = uniform(leader), uniform(turn)
