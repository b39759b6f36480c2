// What a warp pays for: the 32-byte sectors its lanes touch, not the bytes they ask for.
//
//   update_aos     u and y[0] of 80-byte records           32 sectors per request
//   update_soa     the same two fields, an array each       4 sectors per request
//   copy_offset    y[i] = x[i + offset]                      4, or 5 unless offset % 8 == 0
//   copy_strided   y[i] = x[i * stride]                      min(32, 4 * stride)
//   copy_permuted  y[i] = x[i ^ mask], mask < 32             4: order inside a line costs nothing
//
// No kernel has a bounds check, as published: the grid covers the arrays exactly.

struct Coefficients {
    float u, v, w;
    float x[8], y[8], z;
};

extern "C" __global__ void update_aos(Coefficients* data)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    data[i].u = data[i].u + 10.f;
    data[i].y[0] = data[i].y[0] + 10.f;
}

// Unlike update_aos, a field's values are neighbours in memory.
extern "C" __global__ void update_soa(float* u, float* y0)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    u[i] = u[i] + 10.f;
    y0[i] = y0[i] + 10.f;
}

extern "C" __global__ void copy_offset(const float* x, float* y, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i + offset];
}

extern "C" __global__ void copy_strided(const float* x, float* y, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i * stride];
}

extern "C" __global__ void copy_permuted(const float* x, float* y, int mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i ^ mask];
}
