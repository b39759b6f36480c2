// What a block takes of an SM, chosen by two defines: how many blocks an SM holds follows.
//
//   hold  VALUES registers a thread and some ten to twenty more, SHARED bytes a block (4096 or more)
//         blocks of 256 threads on sm_90:
//         VALUES=8 SHARED=4096    8, limited by warps
//         VALUES=64 SHARED=4096   3, limited by registers
//         VALUES=8 SHARED=49152   4, limited by shared memory

// x holds VALUES values for each thread of the grid, y one; the threads of a block are mirrored on the way.
extern "C" __global__ void hold(const unsigned* x, unsigned* y)
{
    __shared__ unsigned turned[SHARED / 4];
    int threads = gridDim.x * blockDim.x;
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;
    unsigned v[VALUES];
    unsigned hash = 0;

#pragma unroll
    for (int k = 0; k < VALUES; k++)
        v[k] = x[k * threads + i];

    // Each value is used first to last and then last to first, so all of them are live in between.
#pragma unroll
    for (int k = 0; k < VALUES; k++)
        hash = 31 * hash + v[k];
#pragma unroll
    for (int k = VALUES - 1; k >= 0; k--)
        hash = 31 * hash + v[k];

    turned[tid] = hash;
    __syncthreads();
    y[i] = turned[blockDim.x - 1 - tid];
}
