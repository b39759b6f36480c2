// Branches that are hard to follow, or that nobody can follow without running them.
//
//   divide    a 64-bit division by a number of the launch, from a library of its own
//   cube      an index over three dimensions, and a comparison of two
//   oblique   trips by the square of the block's index, which no proof covers
//   by_data   trips that were loaded: refused
//   by_flag   a wait for another block's store: refused
//   by_clock  a wait for time to pass: refused

extern "C" __global__ void divide(int* y, long long n, long long d)
{
    long long t = threadIdx.x + blockIdx.x * (long long)blockDim.x;
#pragma unroll 1
    for (long long i = t / d; i < n; i += d) y[i % 16] = 1;
}

extern "C" __global__ void cube(int* y, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y, plane = blockIdx.z * blockDim.z + threadIdx.z;
    int i = (plane * gridDim.y * blockDim.y + row) * gridDim.x * blockDim.x + x;
    if (i < n) y[i] = i;
    else if (x > row) y[0] = i;
}

extern "C" __global__ void oblique(int* y, int n)
{
#pragma unroll 1
    for (int i = blockIdx.x * blockIdx.x; i < n; i += 64) y[i] = i;
}

extern "C" __global__ void by_data(const int* x, int* y)
{
#pragma unroll 1
    for (int i = 0; i < x[threadIdx.x]; ++i) y[i] = i;
}

extern "C" __global__ void by_flag(const volatile int* x, int* y)
{
    if (threadIdx.x == 0)
        while (*x == 0) {}
    __syncthreads();
    y[threadIdx.x] = 1;
}

extern "C" __global__ void by_clock(int* y, int n)
{
    long long start = clock64();
    while (clock64() - start < n) y[0] += 1;
}
