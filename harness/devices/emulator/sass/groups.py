"""Where every lane stands, and with whom: lanes that split stay split until a barrier joins them.

One group of a warp runs, the others are aside or wait. Where two could run, at a branch or when
somebody else can go on as well, the smaller one does, of equal ones the one that does not jump or
ran before; the other is put aside. Who was put aside last goes next. It is alone: those put aside
before it are one group if they stand at one place.

A barrier register holds one mask for all groups of a warp. BSSY adds a group to it, and who issues
a BSYNC waits for all the mask; the last to come takes them past it. If the last one goes instead,
by EXIT or BREAK, those that wait issue their BSYNC once more, as one group. So they do at a
WARPSYNC whenever more than one group came, and at a BSYNC if lanes that left are still in its mask:
EXIT removes a lane from it, unless nobody else is in there.

Launches on an H200 decided that (tests/parting.py, tests/leaving.py). Of 59 that it was not fitted
to 58 agree (tests/unseen.py). In the other one part of a group leaves, the rest comes to where
others of a mask are aside, and lanes that left before are in that mask: one BSYNC less was issued.
Several rules would say so, and they differ elsewhere; such an EXIT is refused.

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
BY_MASK: Final = 1 << 62  # a wait for the lanes of a mask, apart from the waits at a barrier
LATER: Final = WARP * WARP  # between the turns of two partings: sizes and ties lie within

Ids = NDArray[np.int64]


class Stuck(Exception):
    """`lanes` cannot go on, or it is not known how."""

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
        The lowest in a warp runs, the next was put aside last.
    waiting
        What a lane waits for, IDLE if for nothing: a barrier by its number from 1 on, or a mask.
    member
        By barrier register: the lanes in its mask.
    """

    def __init__(self, blocks: int, size: int) -> None:
        self.blocks = blocks
        warps = -(-size // WARP)
        self.index: Ids = np.arange(warps * WARP, dtype=np.int64).reshape(1, warps, WARP)
        self.pc = np.where(self.index < size, np.int64(0), np.int64(DONE))
        self.leader: Ids = np.zeros_like(self.index)
        self.turn: Ids = np.zeros_like(self.index)
        self.waiting: Ids = np.zeros_like(self.index)
        self.member: dict[str, Lanes] = {}
        self._made = 0

    @property
    def running(self) -> Lanes:
        """The lanes that have not left."""
        return np.not_equal(self.pc, DONE)

    @property
    def _ready(self) -> Lanes:
        """Those that run or are aside."""
        return self.running & np.equal(self.waiting, IDLE)

    def next(self) -> tuple[int, Lanes] | None:
        """Return a place, and the lanes there whose turn it is in their warp; None if all are done.

        Raises
        ------
        Stuck
            Lanes wait for each other.
        """
        self.pc = uniform(self.pc)
        turn = np.where(self._ready, self.turn, NEVER)
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
        """Send `lanes` apart, a group of each warp; of equal parts the last named runs on."""
        for offset, part in goal.items():
            self.go(offset, part)
        parts = [part for part in goal.values() if part.any()]
        places = sum(_any(part).astype(np.int64) for part in parts)
        self._order(np.greater(places, 1), *parts)

    def leave(self, lanes: Lanes, rest: Lanes) -> None:
        """End the threads in `lanes`, of a group whose others, `rest`, run on.

        Raises
        ------
        Stuck
            These come to others of a mask that holds lanes that left before.
        """
        self.go(DONE, lanes)
        self._lead(rest)
        place = np.where(rest, self.pc, NOWHERE).max(axis=-1, keepdims=True)
        beside = self._ready & ~rest & (self.pc == place) & _any(lanes)
        for barrier, members in self.member.items():
            others = members & ~lanes
            self.member[barrier] = kept = np.where(_any(others), others, members)
            if (unclear := kept & beside & _any(kept & ~self.running)).any():
                raise Stuck(f"who waits is not known: {barrier} holds lanes that left", unclear)
        self._wake(rest)

    def join(self, barrier: str, lanes: Lanes) -> None:
        """BSSY: these lanes are to meet again."""
        self.member[barrier] = self._members(barrier) | lanes

    def forget(self, barrier: str, lanes: Lanes, group: Lanes) -> None:
        """BREAK: these lanes of a group will not come."""
        self.member[barrier] = self._members(barrier) & ~lanes
        self._wake(group)

    def wait(self, barrier: str, lanes: Lanes, after: int) -> None:
        """BSYNC: wait for all the mask, then go on, or try again if lanes that left are in it.

        Raises
        ------
        Stuck
            Some of them did not join.
        """
        members = self._members(barrier)
        if (strangers := lanes & ~members).any():
            raise Stuck(f"lanes wait at {barrier} that never joined it", strangers)
        self.waiting = np.where(lanes, _number(barrier), self.waiting)
        met = self._complete(_number(barrier), members) & _any(lanes)
        again = met & _any(members & ~self.running)
        self.member[barrier] = np.where(_any(met), again, members)
        self._free(met)
        self._order(_any(met), met)
        self.go(after, met & ~again)

    def wait_for(self, mask: Ids, lanes: Lanes, after: int) -> None:
        """WARPSYNC: go on if all the lanes of a mask are in the group, else wait for them."""
        missing = mask & bits(self.running & ~lanes)
        self.waiting = np.where(lanes & (missing != 0), BY_MASK | mask, self.waiting)
        self.go(after, lanes & (missing == 0))
        self._wake(np.zeros_like(lanes))

    def _members(self, barrier: str) -> Lanes:
        return self.member.get(barrier, np.zeros_like(self.index, np.bool_))

    def _complete(self, waited: int, awaited: Lanes) -> Lanes:
        """Return the lanes that wait for something if all that they await do."""
        there: Lanes = self.waiting == waited
        return there & ~_any(awaited & self.running & ~there)

    def _wake(self, group: Lanes) -> None:
        """Let those that wait for nobody else issue their wait again, before or after `group`."""
        for waited in np.unique(self.waiting[self.waiting != IDLE]).tolist():
            barrier = None if waited & BY_MASK else f"B{waited - 1}"
            awaited = self._members(barrier) if barrier else (waited >> LANE & 1).astype(np.bool_)
            woken = self._complete(waited, awaited)
            if barrier:
                self.member[barrier] = np.where(_any(woken), woken, awaited)
            self._free(woken)
            self._order(_any(woken), woken, group)

    def _free(self, lanes: Lanes) -> None:
        """Let lanes wait no more; they must stand together, or this is no meeting known here."""
        place = np.where(lanes, self.pc, NEVER).min(axis=-1, keepdims=True)
        if (apart := lanes & (self.pc != place)).any():
            raise Stuck("lanes that meet would go on from different places", apart)
        self.waiting = uniform(np.where(lanes, np.int64(IDLE), self.waiting))

    def _order(self, warps: Lanes, *parts: Lanes) -> None:
        """Make the parts of some warps groups: the smallest runs, of equal ones the last named."""
        if not warps.any():
            return
        self._made += 1
        if len(parts) > 1:
            self._gather(self._ready & warps & ~np.logical_or.reduce(np.broadcast_arrays(*parts)))
        for place, part in enumerate(parts):
            chosen = part & warps
            turn = chosen.sum(axis=-1, keepdims=True) * WARP - place - self._made * LATER
            self.turn = uniform(np.where(chosen, turn, self.turn))
            self._lead(chosen)

    def _gather(self, aside: Lanes) -> None:
        """Make those aside that stand at one place one group; its turn is that of the first."""
        if not aside.any():
            return
        aside, pc, leader, turn = np.broadcast_arrays(aside, self.pc, self.leader, self.turn)
        leader, turn, rows = leader.copy(), turn.copy(), aside.any(axis=-1)
        chosen, places, turns = aside[rows], pc[rows], turn[rows]
        mates = (places[:, None, :] == places[:, :, None]) & chosen[:, None, :]
        latest = np.where(mates, turns[:, None, :], -NEVER).max(axis=-1)
        leader[rows] = np.where(chosen, mates.argmax(axis=-1), leader[rows])
        turn[rows] = np.where(chosen, latest, turns)
        self.leader, self.turn = uniform(leader), uniform(turn)

    def _lead(self, group: Lanes) -> None:
        """Let the lowest of `group` in each warp lead it."""
        lowest = group.argmax(axis=-1, keepdims=True)
        self.leader = uniform(np.where(group, lowest, self.leader))


def bits(lanes: Lanes) -> Ids:
    """Return the lanes of each warp as a mask."""
    found: Ids = (lanes * (1 << LANE)).sum(axis=-1, keepdims=True)
    return found


def _any(lanes: Lanes) -> Lanes:
    """Return in which warps there are such lanes."""
    return np.asarray(lanes.any(axis=-1, keepdims=True))


def _number(barrier: str) -> int:
    return int(barrier.removeprefix("B")) + 1
