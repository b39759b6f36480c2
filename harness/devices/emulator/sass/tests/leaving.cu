// Who waits for lanes that leave, from wherever that is; lanes part by their index and by scalars (leaving.py).
//
//   exit_sides    two sides, taken by the lanes of `side`; those of `leave` go by EXIT from either
//   exit_swapped  the same, the sides swapped in the code
//   break_sides   two sides within a loop; lanes of `leave` break out of the loop from either
//   three_way     a switch of three; lanes of `leave` go by EXIT from any of them
//   two_loops     `goto` out of two nested loops
//   next_row      out of the inner loop into the outer one, and there some leave
//   inner_leaves  three nested branches; lanes of `leave` go to the end from the innermost one
//   deep_return   return from within two loops
//   far_return    a function that is not inlined returns early, called from both sides
//   mixed         continue, break and return in one loop
//   sync_parts    __syncwarp of either side's lanes, under the branch; lanes of `leave` go before it
//   sync_loop     __syncwarp of those that make as many trips
//   do_while      a loop that ends at its foot, left from its middle
//   uneven_trips  trips of each lane's own; those of `leave` break in their last trip, or return
//   tree          three branches one within the other: eight groups; the lanes of `leave` go
//   by_block      as uneven_trips, from block to block otherwise
//   strays        out of two regions to a place where no barrier is met, and some leave there
//   sync_half     as sync_parts, of masks known to the compiler
//   sync_late     __syncwarp after a branch whose lanes left

#define LANE(mask) ((mask) >> (t & 31) & 1)
#define STORE(v) (out[blockIdx.x * blockDim.x + threadIdx.x] = (v))
#define LOOP(n) _Pragma("unroll 1") for (unsigned k = 0; k < (n); ++k) v = step(v, k);
__device__ unsigned step(unsigned v, unsigned i) { return v * 3 + i; }

extern "C" __global__ void exit_sides(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 16 != 15) {
        if (LANE(side)) { LOOP(3) if (LANE(leave)) { out[0] = v; return; } v ^= 5; LOOP(2) }
        else { LOOP(4) if (LANE(leave)) { out[1] = v; return; } v += 9; LOOP(3) }
        out[2] = v;
    }
    STORE(v);
}

extern "C" __global__ void exit_swapped(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 16 != 15) {
        if (!LANE(side)) { LOOP(4) if (LANE(leave)) { out[1] = v; return; } v += 9; LOOP(3) }
        else { LOOP(3) if (LANE(leave)) { out[0] = v; return; } v ^= 5; LOOP(2) }
        out[2] = v;
    }
    STORE(v);
}

extern "C" __global__ void break_sides(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
        if (LANE(side)) { LOOP(2 + i) if (LANE(leave) && i == t % 3) break; v ^= 5; LOOP(2) }
        else { LOOP(3 + i) if (LANE(leave) && i == t % 2) break; v += 9; LOOP(3) }
        out[i] = v;
    }
    STORE(v);
}

extern "C" __global__ void three_way(unsigned* out, unsigned a, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 32 != 7) {
        switch (LANE(a) + 2 * LANE(b)) {
            case 1: LOOP(5) if (LANE(leave)) { out[0] = v; return; } LOOP(2) break;
            case 2: LOOP(3) v ^= 3; if (LANE(leave)) { out[1] = v; return; } LOOP(3) break;
            default: LOOP(4) v += 7; if (LANE(leave)) { out[2] = v; return; } LOOP(4)
        }
        out[3] = v;
    }
    STORE(v);
}

extern "C" __global__ void two_loops(unsigned* out, unsigned n, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 8 != 6) {
#pragma unroll 1
        for (unsigned i = 0; i <= t % 4; ++i) {
#pragma unroll 1
            for (unsigned j = 0; j < n; ++j) {
                v = step(v, j);
                if (LANE(leave) && i + j == t % 5) goto done;
                if (j > t / 8 % 4) break;
            }
            out[i] = v;
        }
        v *= 5;
    done:
        out[9] = v;
    }
    STORE(v);
}

extern "C" __global__ void next_row(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
#pragma unroll 1
        for (unsigned j = 0; j < 2 + t % 3; ++j) {
            v = step(v, j);
            if (LANE(side) && j == t % 2 + i % 2) goto next;
        }
        out[i] = v;
        LOOP(2)
        continue;
    next:
        v += 3;
        LOOP(3)
        if (LANE(leave) && i == t % 3) { out[8] = v; return; }
    }
    STORE(v);
}

extern "C" __global__ void inner_leaves(unsigned* out, unsigned a, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 16 != 3) {
        if (LANE(a)) {
            LOOP(2)
            if (LANE(b)) { LOOP(3) if (LANE(leave)) goto end; v ^= 5; LOOP(2) }
            else { LOOP(4) }
            out[1] = v;
        } else { LOOP(3) if (LANE(leave)) goto end; LOOP(1) }
        out[2] = v;
        LOOP(2)
    }
    out[3] = v;
end:
    STORE(v);
}

extern "C" __global__ void deep_return(unsigned* out, unsigned n, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
#pragma unroll 1
        for (unsigned j = 0; j <= (t + i) % 4; ++j) {
            v = step(v, j);
            if (LANE(leave) && i * j == t % 7) { out[4] = v; return; }
        }
        if (i == t % 6) return;
        out[i] = v;
    }
    STORE(v);
}

__device__ __noinline__ unsigned far(unsigned v, unsigned trips, unsigned stop, unsigned* out)
{
#pragma unroll 1
    for (unsigned i = 0; i < trips; ++i) {
        v = step(v, i);
        if (i == stop) return v * v;
        out[i] = v;
    }
    return v + 1;
}

extern "C" __global__ void far_return(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 32 != 9) {
        if (LANE(side)) { v = far(t, 2 + t % 4, LANE(leave) ? t % 3 : 9, out); out[1] = v; }
        else { v = far(v, 3 + t % 2, LANE(leave) ? t % 5 : 9, out) + 7; if (t % 16 == 2) return; }
        out[2] = v;
    }
    STORE(v);
}

extern "C" __global__ void mixed(unsigned* out, unsigned n, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        if ((i + t) % 3 == 1) continue;
        v = step(v, i);
        if (i > 2 && LANE(leave)) { LOOP(t % 3) if (t & 1) return; break; }
        if (i + 2 > t % 9) { LOOP(2) out[i] = v; continue; }
        out[5] = v;
    }
    STORE(v);
}

extern "C" __global__ void sync_parts(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(side)) {
        LOOP(1 + t % 3)
        if (LANE(leave)) { out[0] = v; return; }
        __syncwarp(side);
        out[1] = v;
        LOOP(2)
    } else {
        LOOP(2 + t % 2)
        if (LANE(leave)) { out[2] = v; return; }
        __syncwarp(~side);
        out[3] = v;
        LOOP(3)
    }
    STORE(v);
}

extern "C" __global__ void sync_loop(unsigned* out, unsigned odd, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
        if (LANE(odd)) { LOOP(i + 1) if (LANE(leave) && i == 1) return; out[i] = v; }
        __syncwarp();
        v += i;
    }
    STORE(v);
}

extern "C" __global__ void do_while(unsigned* out, unsigned n, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1, i = 0;
    if (t % 16 != 5) {
#pragma unroll 1
        do {
            v = step(v, i);
            if (LANE(leave) && i == n) { out[0] = v; LOOP(2) if (t % 4 < 2) return; break; }
            out[1] = v;
        } while (++i <= t * 5 % 7);
        out[2] = v;
    }
    STORE(v);
}

extern "C" __global__ void uneven_trips(unsigned* out, unsigned back, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1, trips = t * 7 % 13 % 5 + 1;
    if (t % 32 != 30) {
#pragma unroll 1
        for (unsigned i = 0; i < trips; ++i) {
            v = step(v, i);
            if (i + 1 == trips && LANE(leave)) { out[0] = v; if (LANE(back)) return; break; }
            out[1] = v;
        }
        v *= 3;
        out[2] = v;
    }
    STORE(v);
}

#define LEAF(n) { LOOP(n) if (LANE(leave)) { out[n] = v; return; } v += n; LOOP(1) }
extern "C" __global__ void tree(unsigned* out, unsigned a, unsigned b, unsigned c, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) {
        if (LANE(b)) { if (LANE(c)) LEAF(2) else LEAF(5) out[8] = v; }
        else { if (LANE(c)) LEAF(6) else LEAF(3) out[9] = v; }
        out[10] = v;
    } else {
        if (LANE(b)) { if (LANE(c)) LEAF(4) else LEAF(2) out[11] = v; }
        else { if (LANE(c)) LEAF(3) else LEAF(7) out[12] = v; }
        out[13] = v;
    }
    STORE(v);
}

extern "C" __global__ void by_block(unsigned* out, unsigned n, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1, mine = (t + blockIdx.x * 3) % 6;
#pragma unroll 1
    for (unsigned i = 0; i <= mine; ++i) {
        v = step(v, i);
        if (i == n && LANE(leave)) { if (blockIdx.x & 1) { out[0] = v; return; } LOOP(2) break; }
        out[1] = v;
    }
    STORE(v);
}

extern "C" __global__ void strays(unsigned* out, unsigned a, unsigned b, unsigned c, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 16 != 3) {
        if (LANE(a)) { LOOP(2) if (LANE(b)) goto stray; LOOP(3) out[1] = v; }
        out[2] = v;
        if (LANE(c)) { LOOP(3) if (LANE(b >> 3)) goto stray; LOOP(1) out[3] = v; }
        out[5] = v;
        LOOP(2)
        goto end;
    stray:
        out[4] = v;
        LOOP(3)
        if (LANE(leave)) return;
        out[6] = v;
        LOOP(2)
        v ^= 3;
    }
end:
    STORE(v);
}

extern "C" __global__ void sync_half(unsigned* out, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (t & 16) { LOOP(1 + t % 3) if (LANE(leave)) return; __syncwarp(0xffff0000); out[1] = v; LOOP(2) }
    else { LOOP(2 + t % 2) if (LANE(leave)) return; __syncwarp(0x0000ffff); out[3] = v; LOOP(3) }
    STORE(v);
}

extern "C" __global__ void sync_late(unsigned* out, unsigned a, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) { LOOP(1 + t % 4) out[1] = v; if (LANE(leave)) { LOOP(t % 3) out[4] = v; return; } }
    else { LOOP(2) }
    asm volatile("bar.warp.sync 0xffffffff;");
    out[2] = v;
    STORE(v);
}
