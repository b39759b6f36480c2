// Kernels whose lanes part: each has a count that can be derived by hand from its machine code.
//
//   nested_loops      a lane's own number of trips in both loops
//   break_continue    lanes skip and leave a loop
//   call              a function that is not inlined, called from both sides of a branch
//   early_return      lanes leave before the others go on
//   uneven_stride     a grid-stride loop whose last trip some lanes do not make
//   halves            one side of a branch, then the other, then both together
//   divide            a 64-bit division by a number of the launch, from a library of its own

extern "C" __global__ void nested_loops(const int* x, int* y)
{
    int sum = 0;
    for (int i = 0; i < (int)(threadIdx.x & 7); ++i) {
#pragma unroll 1
        for (int j = 0; j <= (int)(threadIdx.x & 3); ++j)
            sum = sum * 3 + x[sum & 15];
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void break_continue(const int* x, int* y, int n)
{
    int sum = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        if ((i + threadIdx.x) % 3 == 0) continue;
        if (i > (int)(threadIdx.x & 15)) break;
        sum = sum * 3 + x[sum & 15];
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__device__ __noinline__ int far(const int* x, int v)
{
    if (v & 1) v = x[v & 15] * 3;
    return v + x[(v + 1) & 15];
}

extern "C" __global__ void call(const int* x, int* y)
{
    int t = threadIdx.x;
    int v = t & 2 ? far(x, t) : far(x, t + 5) + 7;
    y[blockIdx.x * blockDim.x + t] = v;
}

extern "C" __global__ void early_return(const int* x, int* y)
{
    int t = threadIdx.x;
    if (t % 5 == 3) return;
    int sum = 0;
    if (t & 1) sum = x[t] * x[t + 1] / 7;
    __syncwarp();
    y[blockIdx.x * blockDim.x + t] = sum;
}

extern "C" __global__ void uneven_stride(const int* x, int* y, int n)
{
    int sum = 0;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum = sum * 3 + x[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void halves(const int* x, int* y)
{
    int t = threadIdx.x, v = t;
    if (t & 1) {
#pragma unroll 1
        for (int i = 0; i < 4; ++i) v = v * 5 + x[v & 7];
    } else {
#pragma unroll 1
        for (int i = 0; i < 3; ++i) v = v * 7 + x[v & 3];
    }
    y[t] = v;
}

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

extern "C" __global__ void by_clock(int* y, int n)
{
    long long start = clock64();
    while (clock64() - start < n) y[0] += 1;
}
