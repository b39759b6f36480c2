// Who goes first when lanes part, and whether those at a BSYNC issue it again: one warp each (parting.py).
//
//   leave_before     one side of a branch leaves within a region, while the other is awaited at its end
//   leave_swapped    the same, the sides swapped in the code
//   leave_outside    the same without a region around both: nobody is awaited
//   leave_twice      both sides are loops whose last lanes leave: two meetings, each awaits one of them
//   leave_by_trips   lanes that make i + 1 trips leave in their last one if bit i of `who` is set
//   order_of_loop    the same, and the clocks at which a lane's last trip began and it left
//   order_of_sides   the clocks at which each of two equal sides began and ended

#define STORE(v) (out[blockIdx.x * blockDim.x + threadIdx.x] = (v))
#define LOOP(n) _Pragma("unroll 1") for (unsigned i = 0; i < (n); ++i) v = step(v, i);
__device__ unsigned step(unsigned v, unsigned i) { return v * 3 + i; }

extern "C" __global__ void leave_before(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
    if (t & 1) {
        if (t & 2) { LOOP(t % 16) }
        else { LOOP(t % 8) out[0] = v; return; }
    }
    STORE(v);
}

extern "C" __global__ void leave_swapped(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
    if (t & 1) {
        if (t & 2) { LOOP(t % 8) out[0] = v; return; }
        LOOP(t % 16)
    }
    STORE(v);
}

extern "C" __global__ void leave_outside(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 4 == 1) { LOOP(t % 8) out[0] = v; return; }
    if (t % 4 == 3) { LOOP(t % 8) }
    STORE(v);
}

extern "C" __global__ void leave_twice(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
    if (t & 1) {
#pragma unroll 1
        for (unsigned i = 0; i < t % 8; ++i) { if (i == 4) return; v = step(v, i); }
    } else {
#pragma unroll 1
        for (unsigned i = 0; i < t % 16; ++i) { if (i == 7) return; v = step(v, i + 7); }
    }
    STORE(v);
}

extern "C" __global__ void leave_by_trips(unsigned* out, unsigned who)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < t % 8; ++i) {
        v = step(v, i);
        if (i + 1 == t % 8 && (who >> i & 1)) { out[0] = v; out[1] = v * v; return; }
    }
    STORE(v);
}

extern "C" __global__ void order_of_loop(unsigned* out, unsigned who)
{
    unsigned t = threadIdx.x, v = 1, start = clock(), tick = start;
#pragma unroll 1
    for (unsigned i = 0; i < t % 8; ++i) {
        tick = clock();
        v = step(v, i);
        if (i + 1 == t % 8 && (who >> i & 1)) { out[t] = tick - start; out[32 + t] = clock() - start; return; }
    }
    out[t] = tick - start;
    out[32 + t] = clock() - start;
    out[64 + t] = v;
}

extern "C" __global__ void order_of_sides(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1, first, last, start = clock();
    if (t & 1) { first = clock(); LOOP(t + 1) last = clock(); }
    else { first = clock(); v = 7; LOOP(t + 2) v *= 5; last = clock(); }
    out[t] = first - start;
    out[32 + t] = last - start;
    out[64 + t] = v;
}
