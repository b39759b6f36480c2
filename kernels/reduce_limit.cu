// The sum of n elements past reduce_v7, to the limit of the memory; each kernel says what it changes.
//
//   reduce_v8     V7 with LOADS loads of 16 bytes a trip      bytes in flight: 16 * LOADS a thread
//   reduce_v9     each block's sum has a place of its own     no atomic; the same bits from run to run
//   reduce_v10    bulk copies hold the bytes in flight        STAGES * CHUNK a block, however few threads
//   reduce_tile   V9 without the loop: one tile a block       small n, where nothing but latency counts
//   reduce_warp   one load, five shuffles                     n <= 32
//
// n is 64-bit, x may begin anywhere, no element is dropped. Elements are float unless a define says
// otherwise; what they are added in stands behind it:
//
//   DOUBLE    double    in double
//   HALF      float16   in float
//   BFLOAT16  bfloat16  in float
//   INT32     int       in long long
//
// BLOCK, LOADS, STAGES and CHUNK (bytes) are for the launcher to choose. `slots` holds one word for each
// four bytes of each block's sum but the last block's, all 0 before the first launch and after every one
// that ends; two launches at once need slots of their own.
//
// A counterfactual is a kernel with this define and nothing else changed:
//
//   RESIDENT=4  V8: registers for four blocks an SM, so too few for the loads to be under way together

typedef unsigned long long word;

#if defined(DOUBLE)
typedef double element;
typedef double total;
#elif defined(HALF) || defined(BFLOAT16)
typedef unsigned short element;
typedef float total;
#elif defined(INT32)
typedef int element;
typedef long long total;
#else
typedef float element;
typedef float total;
#endif

#ifndef LOADS
#define LOADS 1
#endif

#ifndef RESIDENT
#define RESIDENT 1  // blocks an SM that the compiler must leave registers for
#endif

#define WIDTH ((int)(16 / sizeof(element)))  // elements a load
#define TILE ((long long)BLOCK * LOADS)      // loads a block and trip

__device__ __forceinline__ total value(element x)
{
#if defined(HALF)
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x));
    return wide;
#elif defined(BFLOAT16)
    return __uint_as_float((unsigned)x << 16);
#else
    return x;
#endif
}

union Load {
    uint4 bits;
    element x[WIDTH];
};

// The sum of one load's elements, in pairs of pairs.
__device__ __forceinline__ total add(uint4 bits)
{
    Load load = {bits};
    total sum[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        sum[i] = value(load.x[i]);
#pragma unroll
    for (int half = WIDTH / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
            sum[i] += sum[i + half];
    return sum[0];
}

__device__ __forceinline__ total warp_sum(total sum)
{
#pragma unroll
    for (int off = 16; off > 0; off >>= 1)
        sum += __shfl_xor_sync(0xffffffff, sum, off);
    return sum;
}

// Valid in the first warp.
__device__ __forceinline__ total block_sum(total sum)
{
    __shared__ total warps[BLOCK / 32];
    int lane = threadIdx.x % 32;

    sum = warp_sum(sum);
    if (lane == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    return threadIdx.x < 32 ? warp_sum(lane < BLOCK / 32 ? warps[lane] : 0) : 0;
}

// x[0:n] as 16-byte loads, and the few elements before and after them.
struct Span {
    const element* x;
    long long n, loads;
    unsigned head;

    __device__ Span(const element* x, long long n) : x(x), n(n)
    {
        head = (-(unsigned)(size_t)x & 15) / sizeof(element);
        loads = n < head ? 0 : (size_t)(n - head) / WIDTH;
    }
    __device__ const uint4* body() const { return (const uint4*)(x + head); }

    // This thread's share of the elements outside the body, at most one on either side.
    __device__ total ends() const
    {
        long long i = (long long)blockIdx.x * BLOCK + threadIdx.x, tail = head + loads * WIDTH + i;
        return (i < head && i < n ? value(x[i]) : 0) + (tail < n ? value(x[tail]) : 0);
    }
};

// This thread's share of the body, from load `first` on, in trips of LOADS loads that wait for none of
// their kind; four running sums, so that no addition waits for the one before it.
__device__ __forceinline__ total add_tiles(const uint4* x, long long loads, long long first)
{
    total sum[4] = {0, 0, 0, 0};
    long long i = first + threadIdx.x;

#pragma unroll 1
    for (; i + (LOADS - 1) * BLOCK < loads; i += gridDim.x * TILE) {
        uint4 bits[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            bits[u] = x[i + u * BLOCK];
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            sum[u % 4] += add(bits[u]);
    }
#pragma unroll 1
    for (; i < loads; i += BLOCK)
        sum[0] += add(x[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

__device__ __forceinline__ total add_share(const Span& span)
{
    return span.ends() + add_tiles(span.body(), span.loads, blockIdx.x * TILE);
}

// Unlike reduce_v7, a trip has LOADS loads under way before the first addition.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    reduce_v8(const element* __restrict__ x, total* out, long long n)
{
    total sum = block_sum(add_share(Span(x, n)));
    if (threadIdx.x == 0)
#ifdef INT32
        atomicAdd((word*)out, (word)sum);
#else
        atomicAdd(out, sum);
#endif
}

// A slot's words hold 32 bits of a sum and a flag. Both are stored at once, so no fence is needed.
union Bits {
    total sum;
    unsigned part[sizeof(total) / 4];
};
#define WORDS ((int)(sizeof(total) / 4))
#define FULL (1ull << 32)

__device__ __forceinline__ void leave(volatile word* slot, total sum)
{
    Bits bits = {sum};
#pragma unroll
    for (int i = 0; i < WORDS; i++)
        slot[i] = FULL | bits.part[i];
}

// Wait for a slot's sum, and leave the slot empty for the next launch.
__device__ __forceinline__ total take(volatile word* slot)
{
    Bits bits;
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        word found;
        do
            found = slot[i];
        while (found < FULL);
        bits.part[i] = (unsigned)found;
        slot[i] = 0;
    }
    return bits.sum;
}

// The last block adds what the others leave, always in the same order, and stores the result. It keeps
// none of them from starting, since GPUs start blocks in their order (which CUDA does not promise).
__device__ __forceinline__ void collect(total sum, total* out, word* slots)
{
    unsigned others = gridDim.x - 1;

    sum = block_sum(sum);
    if (blockIdx.x < others) {
        if (threadIdx.x == 0)
            leave(slots + blockIdx.x * WORDS, sum);
        return;
    }
    if (others > 0) {
        total own = sum;
        sum = 0;
        for (unsigned i = threadIdx.x; i < others; i += BLOCK)
            sum += take(slots + i * WORDS);
        __syncthreads();
        sum = block_sum(sum) + own;
    }
    if (threadIdx.x == 0)
        *out = sum;
}

// Bring the line that this block will store to into L2, and its page within reach, while the elements
// are on their way.
__device__ __forceinline__ void expect(const total* out, const word* slots)
{
    const void* mine = blockIdx.x < gridDim.x - 1 ? (const void*)(slots + blockIdx.x * WORDS) : out;
    if (threadIdx.x == 0)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(mine));
}

// Unlike reduce_v8, a block leaves its sum in its own slot, and the last block adds them in their order.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    reduce_v9(const element* __restrict__ x, total* out, word* slots, long long n)
{
    expect(out, slots);
    collect(add_share(Span(x, n)), out, slots);
}

// Unlike reduce_v9, a block has one tile: no loop, and a grid as large as the array.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    reduce_tile(const element* __restrict__ x, total* out, word* slots, long long n)
{
    Span span(x, n);
    const uint4* body = span.body();
    long long first = blockIdx.x * TILE + threadIdx.x;
    uint4 bits[LOADS];

    expect(out, slots);
#pragma unroll
    for (int u = 0; u < LOADS; u++)
        bits[u] = first + u * BLOCK < span.loads ? body[first + u * BLOCK] : make_uint4(0, 0, 0, 0);
    total sum = span.ends();
#pragma unroll
    for (int u = 0; u < LOADS; u++)
        sum += add(bits[u]);
    collect(sum, out, slots);
}

extern "C" __global__ void reduce_warp(const element* __restrict__ x, total* out, long long n)
{
    total sum = warp_sum(threadIdx.x < n ? value(x[threadIdx.x]) : 0);
    if (threadIdx.x == 0)
        *out = sum;
}

#if __CUDA_ARCH__ >= 900 && defined(STAGES)
// A ring of STAGES copies under way, each with the barrier that its bytes complete.
struct Ring {
    unsigned bytes, barriers;  // addresses in shared memory

    __device__ void start() const
    {
        for (int stage = 0; stage < STAGES; stage++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers + 8 * stage));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __device__ void copy(int stage, const uint4* from) const
    {
        unsigned barrier = barriers + 8 * stage;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(CHUNK) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                bytes + stage * CHUNK),
            "l"(from), "r"(CHUNK), "r"(barrier)
            : "memory");
    }
    __device__ void wait(int stage, int parity) const
    {
        int done;
        do
            asm volatile(
                "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                : "=r"(done)
                : "r"(barriers + 8 * stage), "r"(parity)
                : "memory");
        while (!done);
    }
};

// Unlike reduce_v9, no register waits for memory: one thread keeps STAGES bulk copies of CHUNK bytes
// under way, and the block adds each from shared memory once it is there.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT)
    reduce_v10(const element* __restrict__ x, total* out, word* slots, long long n)
{
    extern __shared__ __align__(128) uint4 staged[];
    __shared__ word barriers[STAGES];
    const int part = CHUNK / 16;  // loads a chunk
    static_assert(part % BLOCK == 0, "each thread adds as many loads of a chunk");
    Ring ring = {(unsigned)__cvta_generic_to_shared(staged), (unsigned)__cvta_generic_to_shared(barriers)};
    Span span(x, n);
    const uint4* body = span.body();
    long long chunks = span.loads / part, chunk = blockIdx.x, ahead = chunk;

    if (threadIdx.x == 0) {
        ring.start();
        for (int stage = 0; stage < STAGES && ahead < chunks; stage++, ahead += gridDim.x)
            ring.copy(stage, body + ahead * part);
    }
    expect(out, slots);
    __syncthreads();

    total sum[4] = {span.ends(), 0, 0, 0};
    int stage = 0, parity = 0;
    for (; chunk < chunks; chunk += gridDim.x) {
        ring.wait(stage, parity);
#pragma unroll
        for (int i = 0; i < part / BLOCK; i++)
            sum[i % 4] += add(staged[stage * part + i * BLOCK + threadIdx.x]);
        __syncthreads();
        if (threadIdx.x == 0 && ahead < chunks) {
            ring.copy(stage, body + ahead * part);
            ahead += gridDim.x;
        }
        if (++stage == STAGES)
            stage = 0, parity ^= 1;
    }
    if (chunk == chunks)  // this block's turn: the part of a chunk that is left
        for (long long i = chunks * part + threadIdx.x; i < span.loads; i += BLOCK)
            sum[1] += add(body[i]);
    collect((sum[0] + sum[1]) + (sum[2] + sum[3]), out, slots);
}
#endif
