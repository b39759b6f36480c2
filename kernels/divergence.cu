// Lanes that part: each group issues its own instructions until a BSYNC joins it again, and the BSYNC too.
//
//   nested_loops    a lane's own number of trips in both loops         28 BSYNCs a warp more than if it stayed whole
//   break_continue  lanes skip a trip, or leave in the middle of it     23 more, on 12 trips
//   call            a branch whose sides call a function, not inlined   5 more, and a RET for each group
//   early_return    lanes leave at once, or from within a loop          7 more: who has left is not waited for
//   uneven_stride   a grid-stride loop that ends within a warp          1 more in the whole grid
//
// What parts them is their own index. No two groups share an issue, even where they stand at the same place.
// If the last lane that others wait for leaves, as lane 31 of early_return does, they issue their BSYNC once more.

#define STORE(v) (out[blockIdx.x * blockDim.x + threadIdx.x] = (v))

__device__ unsigned step(unsigned v, unsigned i) { return v * 3 + i; }

extern "C" __global__ void nested_loops(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < t % 8; ++i)
#pragma unroll 1
        for (unsigned j = 0; j <= t / 8 % 4; ++j) v = step(v, j);
    STORE(v);
}

extern "C" __global__ void break_continue(unsigned* out, unsigned n)
{
    unsigned t = threadIdx.x, v = 1;
#pragma unroll 1
    for (unsigned i = 0; i < n; ++i) {
        if ((i + t) % 3 == 0) continue;
        if (i > t % 16) break;
        v = step(v, i);
    }
    STORE(v);
}

__device__ __noinline__ unsigned far(unsigned v, unsigned trips)
{
#pragma unroll 1
    for (unsigned i = 0; i < trips; ++i) v = step(v, i);
    return v;
}

extern "C" __global__ void call(unsigned* out)
{
    unsigned t = threadIdx.x;
    STORE(t & 2 ? far(t, t % 4) : far(1, t % 8) + 7);
}

extern "C" __global__ void early_return(unsigned* out)
{
    unsigned t = threadIdx.x, v = 1;
    if (t % 5 == 3) return;
#pragma unroll 1
    for (unsigned i = 0; i < t % 8; ++i) {
        if (i * i > t) return;
        v = step(v, i);
    }
    STORE(v);
}

extern "C" __global__ void uneven_stride(unsigned* out, unsigned n)
{
    unsigned v = 1;
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v = step(v, i);
    STORE(v);
}
