// c += a * b, and how many of its loads are under way before the first result is needed.
//
//   naive                one element a thread                      3 loads, then the store
//   run_time_stride      two, a grid apart                         5 loads, the store, then c's second load
//   compile_time_offset  two, a block apart                        6 loads, then both stores
//
// As published, but for names. A counterfactual is one of these defines and nothing else changed:
//
//   RUN_TIME   compile_time_offset: the block's size is read at run time     5 loads, as run_time_stride
//   STRIDE=s   run_time_stride: s, which is what it would compute            6 loads if 4 s fits an instruction
//
// No kernel has a bounds check, as published: the grid covers the arrays exactly.
//
// TURNS=t makes a launched block stand for t blocks of a grid t times as large, one after another: so few
// threads stay resident that nothing hides the latency, for long enough to time. t = 1 is the kernel alone.

#ifndef TURNS
#define TURNS 1
#endif
#define EACH_TURN _Pragma("unroll 1") for (int turn = 0; turn < TURNS; turn++)
#define BLOCK (blockIdx.x + turn * gridDim.x)
#define BLOCKS (TURNS * gridDim.x)

#ifdef RUN_TIME
#define THREAD_BLOCK_DIM blockDim.x
#else
#define THREAD_BLOCK_DIM 128
#endif

#ifndef STRIDE
#define STRIDE (blockDim.x * BLOCKS)
#endif

extern "C" __global__ void naive(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c)
{
    EACH_TURN {
        int idx = BLOCK * blockDim.x + threadIdx.x;

        c[idx] += a[idx] * b[idx];
    }
}

// Unlike naive, two elements a thread; the compiler cannot know that the stride is not 0.
extern "C" __global__ void run_time_stride(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c)
{
    EACH_TURN {
        int tid = BLOCK * blockDim.x + threadIdx.x;
        int stride = STRIDE;

#pragma unroll 2
        for (int i = 0; i < 2; i++) {
            const int idx = tid + i * stride;
            c[idx] += a[idx] * b[idx];
        }
    }
}

// Unlike run_time_stride, the distance is a number in the instruction.
extern "C" __global__ void compile_time_offset(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c)
{
    EACH_TURN {
        int off = 2 * THREAD_BLOCK_DIM * BLOCK + threadIdx.x;

#pragma unroll 2
        for (int i = 0; i < 2; i++) {
            const int idx = off + i * THREAD_BLOCK_DIM;
            c[idx] += a[idx] * b[idx];
        }
    }
}
