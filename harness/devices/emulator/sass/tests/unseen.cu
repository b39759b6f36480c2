// Shapes of control flow that the rule of divergence was not fitted to (unseen.py); lanes part by index and scalars.
//
//   collatz        a loop of data-like trips, left by `break` from one trip of some lanes
//   euclid         two sides in a loop: `return` from one, `break` from the other
//   machine        a state machine: continue, return, goto out of the loop
//   short_circuit  && and || that jump between the three sides of a loop's body
//   three_loops    `goto` out of the innermost of three loops, into the outer one or past it
//   gone_whole     two regions, from both sides of which whole groups leave
//   calls          nested functions that return early, or leave the kernel
//   search_sorted  binary search: break, return and a loop on one side
//   each_bit       a loop over the set bits of each lane's word
//   sync_rounds    bar.warp.sync of all lanes, reached by `goto` from three places
//   sync_side      bar.warp.sync of either side's lanes, some of which left
//   foot           a loop that ends at its foot around one that is left two ways
//   staircase      four branches one within the other, left at each step
//   zigzag         jumps into the middle of straight code, forwards and back

#define LANE(mask) ((mask) >> (t & 31) & 1)
#define STORE(v) (out[blockIdx.x * blockDim.x + threadIdx.x] = (v))
#define LOOP(n) _Pragma("unroll 1") for (unsigned k = 0; k < (n); ++k) v = step(v, k);
#define EXIT_IF(c) if (c) { out[1] = v; asm volatile("exit;"); }
__device__ unsigned step(unsigned v, unsigned i) { return v * 3 + i; }

extern "C" __global__ void collatz(unsigned* out, unsigned first, unsigned leave)
{
    unsigned t = threadIdx.x, n = t + first, v = 0;
#pragma unroll 1
    while (n != 1 && v < 40) {
        if (n & 1) { n = 3 * n + 1; out[2] = n; } else n >>= 1;
        if (LANE(leave) && n % 7 == 3) break;
        ++v;
    }
    STORE(v);
}

extern "C" __global__ void euclid(unsigned* out, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, x = t + 3, y = b, v = 0;
#pragma unroll 1
    while (x != y) {
        ++v;
        if (x > y) { x -= y; out[3] = v; if (LANE(leave) && v == 3) return; }
        else { y -= x; out[4] = x; if (LANE(leave >> 3) && v == 4) break; }
        if (v > 12) break;
    }
    STORE(v + x);
}

extern "C" __global__ void machine(unsigned* out, unsigned seed, unsigned leave)
{
    unsigned t = threadIdx.x, v = t, state = (seed >> (t & 15)) & 3;
#pragma unroll 1
    for (unsigned i = 0; i < 7; ++i) {
        if (!(state & 1)) {
            if (!(state & 2)) { v = step(v, i); state = v & 3; continue; }
            if (LANE(leave)) { out[6] = v; return; }
            state = 3;
        } else if (state & 2) { if (LANE(leave >> 1)) goto end; state = t & 1; out[7] = v; }
        else { LOOP(t % 3) state = 2; out[5] = v; }
        v ^= i;
    }
end:
    STORE(v);
}

extern "C" __global__ void short_circuit(unsigned* out, unsigned a, unsigned b, unsigned c, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
        if (LANE(a >> i) && (LANE(b >> i) || (LANE(c) && i != 1))) { LOOP(2 + t % 2) out[2] = v; }
        else if (LANE(c >> i) || LANE(a)) { LOOP(3) if (LANE(leave) && i == 1) return; out[3] = v; }
        else { if (LANE(leave >> 5)) break; LOOP(1) out[4] = v; }
        v += i;
    }
    STORE(v);
}

extern "C" __global__ void three_loops(unsigned* out, unsigned n, unsigned near, unsigned far)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
#pragma unroll 1
        for (unsigned j = 0; j <= t % 3; ++j) {
#pragma unroll 1
            for (unsigned k = 0; k < n; ++k) {
                v = step(v, k);
                if (LANE(near) && k == (t + j) % 4) goto row;
                if (LANE(far) && i + j + k == t % 6) goto end;
            }
            out[j] = v;
        }
        v += 5;
    row:
        out[i] = v;
    }
    v *= 7;
    out[9] = v;
end:
    STORE(v);
}

extern "C" __global__ void gone_whole(unsigned* out, unsigned a, unsigned b, unsigned c, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) {
        LOOP(2)
        if (LANE(b)) { LOOP(2 + t % 2) EXIT_IF(LANE(leave)) out[2] = v; }
        else { EXIT_IF(LANE(leave >> 1)) LOOP(1) }
        out[3] = v;
    }
    if (LANE(c)) {
        LOOP(1 + t % 3)
        if (LANE(b >> 2)) { EXIT_IF(LANE(leave >> 7)) LOOP(3) } else { LOOP(2 + t / 8) }
        out[4] = v;
    }
    LOOP(t % 4)
    STORE(v);
}

__device__ __noinline__ unsigned inner(unsigned v, unsigned n, unsigned stop)
{
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) { if (i == stop) return v + 9; v = step(v, i); }
    return v;
}
__device__ __noinline__ unsigned outer(unsigned v, unsigned n, unsigned m, unsigned* out)
{
#pragma unroll 1
    for (unsigned i = 0; i <= n; ++i) {
        v = inner(v, i + 2, m);
        if (v % 5 == 2) return v;
        if (i == m) { out[i] = v; asm volatile("exit;"); }
    }
    return inner(v, 2, 1) + 1;
}
extern "C" __global__ void calls(unsigned* out, unsigned side, unsigned leave)
{
    unsigned t = threadIdx.x, v = t;
    if (LANE(side)) v = outer(v, t % 3, LANE(leave) ? t % 4 : 9, out);
    else { v = inner(v, t % 5, LANE(leave) ? 2 : 9); out[5] = v; }
    STORE(v);
}

extern "C" __global__ void search_sorted(unsigned* out, unsigned key, unsigned leave)
{
    unsigned t = threadIdx.x, low = 0, high = 64, v = 0, want = (t * key) & 63;
#pragma unroll 1
    while (low < high) {
        unsigned middle = (low + high) >> 1;
        if (middle == want) { out[2] = v; if (LANE(leave)) return; break; }
        if (middle < want) { low = middle + 1; v = step(v, low); out[3] = v; }
        else { high = middle; LOOP(2) }
    }
    STORE(v);
}

extern "C" __global__ void each_bit(unsigned* out, unsigned set, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1, rest = (set >> (t % 11)) & 0x3ff;
#pragma unroll 1
    while (rest) {
        unsigned lowest = rest & -rest;
        rest ^= lowest;
        if (lowest & 0x55) { v = step(v, lowest); out[1] = v; continue; }
        if (LANE(leave) && lowest > 64) { out[2] = v; return; }
        LOOP(t & 1)
        if (LANE(leave >> 4) && lowest == 8) goto out;
    }
    v += 3;
    out[4] = v;
out:
    STORE(v);
}

extern "C" __global__ void sync_rounds(unsigned* out, unsigned a, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < 3; ++i) {
        if (LANE(a >> i)) { LOOP(1 + t % 2) if (LANE(leave) && i == 1) { LOOP(t % 3) out[1] = v; return; } out[2] = v; goto meet; }
        LOOP(2)
        if (LANE(leave >> 9)) { out[3] = v; goto meet; }
        v ^= 9;
    meet:
        asm volatile("bar.warp.sync 0xffffffff;");
        v += i;
    }
    STORE(v);
}

extern "C" __global__ void sync_side(unsigned* out, unsigned a, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) {
        if (LANE(b)) { LOOP(2) if (LANE(leave)) return; out[1] = v; } else { LOOP(1 + t % 2) out[2] = v; }
        asm volatile("bar.warp.sync %0;" ::"r"(a));
        out[3] = v;
        LOOP(2)
    } else {
        LOOP(3)
        if (LANE(b)) { LOOP(t % 3) if (LANE(leave)) { out[4] = v; return; } }
        asm volatile("bar.warp.sync %0;" ::"r"(~a));
        out[5] = v;
    }
    STORE(v);
}

extern "C" __global__ void foot(unsigned* out, unsigned n, unsigned a, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1, i = 0, j;
#pragma unroll 1
    do {
        j = t % 3;
#pragma unroll 1
        while (j < n) {
            v = step(v, j++);
            if (LANE(a) && j + i == 4) { out[1] = v; goto skip; }
            if (LANE(leave) && j * i == 2 + t % 2) { out[2] = v; return; }
        }
        v ^= 3;
        LOOP(1)
    skip:
        if (LANE(a >> 6) && i == 1) break;
        out[3] = v;
    } while (++i < 2 + t % 4);
    STORE(v);
}

extern "C" __global__ void staircase(unsigned* out, unsigned a, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) { LOOP(1)
        if (LANE(a >> 1)) { LOOP(2) EXIT_IF(LANE(leave))
            if (LANE(b)) { LOOP(1) out[2] = v;
                if (LANE(b >> 1)) { LOOP(2) EXIT_IF(LANE(leave >> 3)) out[3] = v; }
                else { LOOP(3) if (LANE(leave >> 5)) goto down; }
                out[4] = v; }
            out[5] = v; LOOP(2) }
        out[6] = v; }
    LOOP(2)
    out[7] = v;
down:
    if (LANE(b >> 3)) { LOOP(t % 3) out[8] = v; }
    STORE(v);
}

extern "C" __global__ void zigzag(unsigned* out, unsigned a, unsigned b, unsigned leave)
{
    unsigned t = threadIdx.x, v = 1;
    if (LANE(a)) goto second;
first:
    LOOP(2)
    if (LANE(b)) { out[1] = v; LOOP(1) goto third; }
second:
    v ^= 5;
    LOOP(1 + t % 2)
    out[2] = v;
    if (LANE(leave) && v % 3) { out[3] = v; return; }
third:
    v += 7;
    out[4] = v;
    if (LANE(b >> 4) && v < 4000) { a = ~a; goto first; }
    STORE(v);
}
