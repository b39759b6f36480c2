// The sum of n floats in seven rungs; each says what it changes in the rung before it.
//
//   reduce_v1         one atomic per element                n atomics on one address, in series
//   reduce_v2         shared-memory tree, interleaved       no bank conflict; 22 of 34 instructions are a modulo
//   reduce_v3         neighbouring threads do the adding    degrees 2 4 8 8 8 4 2 1 by round (block 256)
//   reduce_v4         the far half is added to the near     no bank conflict; one contended atomic per block
//   reduce_v5         few blocks, each walks the array      atomics = blocks; 4 bytes in flight per thread
//   reduce_v6         the last rounds by shuffle            two barriers fewer, same bytes in flight
//   reduce_v7         one float4 per load                   16 bytes in flight per thread
//   reduce_v5_float4  V5's tree, V7's load                  as fast as V7: the load is what counts
//   atomic_alone      V4's atomic and nothing else          what one contended atomic costs
//
// The rungs stand as the seminar published them (V7 with the type that compiles): int n, blockDim.x in the
// loops, the unsigned grid stride. A counterfactual is a rung with one of these defines and nothing else changed:
//
//   MASK          V2: tid & (step - 1) in place of tid % step
//   STORE         V2-V4: a plain store per block in place of the atomic
//   SPREAD        V2-V4, atomic_alone: each block's atomic adds into a cache line of its own, not all into one float
//   INT_STRIDE    V6, V7: a signed grid stride, which the compiler may unroll
//   SHUFFLE_DOWN  V6, V7: __shfl_down_sync in place of __shfl_xor_sync

#ifdef MASK
#define DIVIDES(step, tid) (((tid) & ((step) - 1)) == 0)
#else
#define DIVIDES(step, tid) ((tid) % (step) == 0)
#endif

#ifdef STORE
#define PUBLISH(out, sum) ((out)[blockIdx.x] = (sum))
#elif defined(SPREAD)
#define PUBLISH(out, sum) atomicAdd((out) + 32 * blockIdx.x, sum)
#else
#define PUBLISH(out, sum) atomicAdd(out, sum)
#endif

#ifdef INT_STRIDE
#define GRID_STRIDE ((int)(gridDim.x * blockDim.x))
#else
#define GRID_STRIDE (gridDim.x * blockDim.x)
#endif

#ifdef SHUFFLE_DOWN
#define SHUFFLE(value, off) __shfl_down_sync(0xffffffff, value, off)
#else
#define SHUFFLE(value, off) __shfl_xor_sync(0xffffffff, value, off)
#endif

__device__ __forceinline__ float warp_reduce_sum(float v)
{
#pragma unroll
    for (int off = 16; off > 0; off >>= 1)
        v += SHUFFLE(v, off);
    return v;
}

extern "C" __global__ void reduce_v1(const float* x, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        atomicAdd(out, x[i]);
}

// Unlike reduce_v1, a block adds its elements in shared memory and needs one atomic for all of them.
extern "C" __global__ void reduce_v2(const float* x, float* out, int n)
{
    __shared__ float s[BLOCK];
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;

    s[tid] = (i < n) ? x[i] : 0.0f;
    __syncthreads();

    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (DIVIDES(2 * stride, tid))
            s[tid] += s[tid + stride];
        __syncthreads();
    }

    if (tid == 0) PUBLISH(out, s[0]);
}

// Unlike reduce_v2, the adding threads are neighbours: whole warps fall idle, and the words they touch spread.
extern "C" __global__ void reduce_v3(const float* x, float* out, int n)
{
    __shared__ float s[BLOCK];
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;

    s[tid] = (i < n) ? x[i] : 0.0f;
    __syncthreads();

    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        int idx = 2 * stride * tid;
        if (idx < blockDim.x)
            s[idx] += s[idx + stride];
        __syncthreads();
    }

    if (tid == 0) PUBLISH(out, s[0]);
}

// Unlike reduce_v3, the stride halves from the far end: a warp touches 32 neighbouring words.
extern "C" __global__ void reduce_v4(const float* __restrict__ x, float* out, int n)
{
    __shared__ float s[BLOCK];
    int tid = threadIdx.x;
    int i = blockIdx.x * blockDim.x + tid;

    s[tid] = (i < n) ? x[i] : 0.0f;
    __syncthreads();

    for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] += s[tid + stride];
        __syncthreads();
    }

    if (tid == 0) PUBLISH(out, s[0]);
}

// Unlike reduce_v4, the grid is as large as the GPU, not as the array: a thread adds many elements first.
extern "C" __global__ void reduce_v5(const float* __restrict__ x, float* out, int n)
{
    __shared__ float s[BLOCK];
    int tid = threadIdx.x;
    float sum = 0.0f;

    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];

    s[tid] = sum;
    __syncthreads();

    for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] += s[tid + stride];
        __syncthreads();
    }

    if (tid == 0) atomicAdd(out, s[0]);
}

// Unlike reduce_v5, a load brings four elements. n4 counts float4s.
extern "C" __global__ void reduce_v5_float4(const float4* __restrict__ x4, float* out, int n4)
{
    __shared__ float s[BLOCK];
    int tid = threadIdx.x;
    float sum = 0.0f;

    for (int i = blockIdx.x * blockDim.x + tid; i < n4; i += gridDim.x * blockDim.x) {
        float4 v = x4[i];
        sum += v.x + v.y + v.z + v.w;
    }

    s[tid] = sum;
    __syncthreads();

    for (int stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (tid < stride) s[tid] += s[tid + stride];
        __syncthreads();
    }

    if (tid == 0) atomicAdd(out, s[0]);
}

// Unlike reduce_v5, a warp adds in registers; shared memory holds one sum per warp.
extern "C" __global__ void reduce_v6(const float* __restrict__ x, float* out, int n)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += GRID_STRIDE)
        sum += x[i];

    sum = warp_reduce_sum(sum);

    __shared__ float warp_sum[32];

    int lane = threadIdx.x & 31;
    int wid = threadIdx.x >> 5;
    if (lane == 0) warp_sum[wid] = sum;
    __syncthreads();

    if (wid == 0) {
        sum = (lane < blockDim.x / 32) ? warp_sum[lane] : 0.0f;
        sum = warp_reduce_sum(sum);
        if (lane == 0) atomicAdd(out, sum);
    }
}

// Unlike reduce_v6, a load brings four elements. n4 counts float4s.
extern "C" __global__ void reduce_v7(const float4* __restrict__ x4, float* out, int n4)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += GRID_STRIDE) {
        float4 v = x4[i];
        sum += v.x + v.y + v.z + v.w;
    }

    sum = warp_reduce_sum(sum);

    __shared__ float warp_sum[32];

    int lane = threadIdx.x & 31;
    int wid = threadIdx.x >> 5;
    if (lane == 0) warp_sum[wid] = sum;
    __syncthreads();

    if (wid == 0) {
        sum = (lane < blockDim.x / 32) ? warp_sum[lane] : 0.0f;
        sum = warp_reduce_sum(sum);
        if (lane == 0) atomicAdd(out, sum);
    }
}

// What is left of reduce_v4 without its loads, its tree and its barriers.
extern "C" __global__ void atomic_alone(float* out)
{
    if (threadIdx.x == 0) PUBLISH(out, 1.0f);
}
