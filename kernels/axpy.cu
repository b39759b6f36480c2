// y = a x + y as published: coalesced, no divergence, no barrier, and still short of a copy's bandwidth.
//
//   axpy_fp16   2 bytes a load    2 sectors per request    8 KiB in flight an SM
//   axpy_fp32   4 bytes a load    4 sectors per request   16 KiB
//   axpy_fp64   8 bytes a load    8 sectors per request   32 KiB
//
// An fp16 number is held in an unsigned short: without its header the compiler has no type for it.

__device__ __forceinline__ float multiply_add(float a, float x, float y) { return a * x + y; }

__device__ __forceinline__ double multiply_add(double a, double x, double y) { return a * x + y; }

__device__ __forceinline__ unsigned short multiply_add(unsigned short a, unsigned short x, unsigned short y)
{
    unsigned short sum;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(sum) : "h"(a), "h"(x), "h"(y));
    return sum;
}

template <typename scalar_t>
__device__ __forceinline__ void axpy_naive(scalar_t a, const scalar_t* x, scalar_t* y, int n)
{
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    if (tid < n) {
        y[tid] = multiply_add(a, x[tid], y[tid]);
    }
}

// a holds the bits of an fp16 number.
extern "C" __global__ void axpy_fp16(unsigned a, const unsigned short* x, unsigned short* y, int n)
{
    axpy_naive((unsigned short)a, x, y, n);
}

extern "C" __global__ void axpy_fp32(float a, const float* x, float* y, int n) { axpy_naive(a, x, y, n); }

extern "C" __global__ void axpy_fp64(double a, const double* x, double* y, int n) { axpy_naive(a, x, y, n); }
