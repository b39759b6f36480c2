// FLOP against bytes: a chain whose length sets the intensity, and the kernels everybody runs.
//
//   fma_chain    FMAS multiply-adds an element        2 FMAS / 8 FLOP per byte
//   relu         max(a x + b, 0)                      3 FLOP,  8 bytes an element
//   dot          sum of x y, one sum a block          2 FLOP,  8 bytes
//   gemv         A x, a row a block                   2 FLOP,  4 bytes: x comes from a cache
//   softmax      of each row, read once               5 FLOP,  8 bytes: the exponential counts as one
//   layer_norm   of each row, read once               7 FLOP,  8 bytes: gamma and beta come from a cache
//
// All but the chain give a block a row of ROW floats, which its BLOCK threads hold in registers.

#ifdef FMAS

extern "C" __global__ void fma_chain(const float4* __restrict__ x, float4* y, float a, float b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    float4 v = x[i];
#pragma unroll 32
    for (int k = 0; k < FMAS; ++k) {
        v.x = fmaf(a, v.x, b);
        v.y = fmaf(a, v.y, b);
        v.z = fmaf(a, v.z, b);
        v.w = fmaf(a, v.w, b);
    }
    y[i] = v;
}

#else

#define VECTORS (ROW / 4 / BLOCK)
#define FULL_WARP 0xffffffffu

// A thread's part of a row: every BLOCK-th float4.
struct Part {
    float4 v[VECTORS];

    __device__ explicit Part(const float4* row)
    {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k)
            v[k] = row[k * BLOCK + threadIdx.x];
    }

    __device__ void store(float4* row) const
    {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k)
            row[k * BLOCK + threadIdx.x] = v[k];
    }

    template <typename F>
    __device__ void each(F f)
    {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k)
            f(v[k].x), f(v[k].y), f(v[k].z), f(v[k].w);
    }
};

__device__ __forceinline__ long long row_start() { return (long long)blockIdx.x * (ROW / 4); }

struct Sum {
    __device__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Every thread gets the result. `shared` holds a float a warp, and must not be in use.
template <typename F>
__device__ float reduce_block(float v, float* shared, F combine)
{
#pragma unroll
    for (int off = 16; off > 0; off >>= 1)
        v = combine(v, __shfl_xor_sync(FULL_WARP, v, off));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();

    v = shared[0];
    for (int warp = 1; warp < BLOCK / 32; ++warp)
        v = combine(v, shared[warp]);
    return v;
}

// e^t for t <= 0, and 1e-38 below -87: 2^k e^f with |f| <= ln(2) / 2, from multiply-adds alone.
__device__ float exponential(float t)
{
    t = fmaxf(t, -87.f);
    float shifted = fmaf(t, 1.44269504f, 12582912.f);  // 1.5 * 2^23: leaves k = round(t / ln 2) in the low bits
    float k = shifted - 12582912.f;
    float f = fmaf(k, -1.42860677e-6f, fmaf(k, -0.693145752f, t));  // ln 2 in two parts: the first product is exact
    float p = 0.00829022937f;                                       // minimax, relative error 1e-7
    p = fmaf(p, f, 0.0418983921f);
    p = fmaf(p, f, 0.166676402f);
    p = fmaf(p, f, 0.499991447f);
    p = fmaf(p, f, 0.999999702f);
    p = fmaf(p, f, 1.f);
    return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

extern "C" __global__ void relu(const float4* __restrict__ x, float4* y, float a, float b)
{
    Part part(x + row_start());
    part.each([=](float& v) { v = fmaxf(fmaf(a, v, b), 0.f); });
    part.store(y + row_start());
}

__device__ __forceinline__ void multiply_rows(const float4* a, const float4* b, float* out)
{
    __shared__ float shared[BLOCK / 32];
    Part one(a), other(b);
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        sum = fmaf(one.v[k].x, other.v[k].x, sum);
        sum = fmaf(one.v[k].y, other.v[k].y, sum);
        sum = fmaf(one.v[k].z, other.v[k].z, sum);
        sum = fmaf(one.v[k].w, other.v[k].w, sum);
    }
    sum = reduce_block(sum, shared, Sum());
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

extern "C" __global__ void dot(const float4* __restrict__ x, const float4* __restrict__ y, float* sums)
{
    multiply_rows(x + row_start(), y + row_start(), sums);
}

// Unlike dot, every block reads the same second row.
extern "C" __global__ void gemv(const float4* __restrict__ a, const float4* __restrict__ x, float* y)
{
    multiply_rows(a + row_start(), x, y);
}

extern "C" __global__ void softmax(const float4* __restrict__ x, float4* y)
{
    __shared__ float shared[2][BLOCK / 32];
    Part part(x + row_start());

    float largest = part.v[0].x;
    part.each([&](float& v) { largest = fmaxf(largest, v); });
    largest = reduce_block(largest, shared[0], Max());

    float sum = 0.f;
    part.each([&](float& v) { v = exponential(v - largest); sum += v; });
    float inverse = 1.f / reduce_block(sum, shared[1], Sum());

    part.each([=](float& v) { v *= inverse; });
    part.store(y + row_start());
}

extern "C" __global__ void layer_norm(const float4* __restrict__ x, const float4* __restrict__ gamma,
                                      const float4* __restrict__ beta, float4* y, float epsilon)
{
    __shared__ float shared[2][BLOCK / 32];
    Part part(x + row_start());

    float sum = 0.f;
    part.each([&](float& v) { sum += v; });
    float mean = reduce_block(sum, shared[0], Sum()) / ROW;

    float squares = 0.f;
    part.each([&](float& v) { v -= mean; squares = fmaf(v, v, squares); });
    float inverse = 1.f / sqrtf(reduce_block(squares, shared[1], Sum()) / ROW + epsilon);

    Part scale(gamma), shift(beta);
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        part.v[k].x = fmaf(part.v[k].x * inverse, scale.v[k].x, shift.v[k].x);
        part.v[k].y = fmaf(part.v[k].y * inverse, scale.v[k].y, shift.v[k].y);
        part.v[k].z = fmaf(part.v[k].z * inverse, scale.v[k].z, shift.v[k].z);
        part.v[k].w = fmaf(part.v[k].w * inverse, scale.v[k].w, shift.v[k].w);
    }
    part.store(y + row_start());
}

#endif
