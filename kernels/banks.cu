// Shared memory is 32 banks of 4-byte words, and a bank serves one word a cycle: lanes that want two wait.
//
//   gather_bytes   a byte per lane, from any address   2 wavefronts if two words share a bank, else 1
//   read_strided   words `stride` apart, over and over  gcd(stride, 32) wavefronts per request
//   transpose      a 32 x 32 tile, read by columns      992 extra wavefronts per tile; 0 with a 33rd column
//
// A counterfactual differs in one define:
//
//   PAD    transpose: unused words at the end of each row of the tile
//   WIDTH  read_strided: bytes of a word, 4, 8 or 16

#ifndef PAD
#define PAD 0
#endif

#ifndef WIDTH
#define WIDTH 4
#endif

#define BYTES 512  // of gather_bytes: every bank four times
#define READS 16   // of read_strided, in a row before the loop turns
#define WORDS (31 * 64 + READS * 32)  // strides up to 64
#define TILE 32
#define ROWS 8     // of a tile that a block of 256 threads moves at once

#if WIDTH == 4
typedef int Word;
__device__ int total(Word v) { return v; }
#elif WIDTH == 8
typedef int2 Word;
__device__ int total(Word v) { return v.x + v.y; }
#else
typedef int4 Word;
__device__ int total(Word v) { return v.x + v.y + v.z + v.w; }
#endif

extern "C" __global__ void gather_bytes(const unsigned char* source, const int* address, unsigned char* out)
{
    __shared__ unsigned char s[BYTES];
    int tid = threadIdx.x;

    s[tid] = source[tid];
    __syncthreads();

    out[tid] = s[address[tid]];
}

// Nothing but shared loads: 16 of them in flight in each of 32 warps keep the load pipe busy, and each brings one
// addition and a sixteenth of a loop. `zero` is 0, which the compiler cannot know: the addresses may change from
// trip to trip, so no load can leave the loop. Reads of one trip are 32 words apart: they cannot be merged either,
// and a shift of all lanes by the same distance leaves their conflicts alone.
extern "C" __global__ void read_strided(const Word* source, int* out, int stride, int trips, int zero)
{
    __shared__ Word s[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        s[i] = source[i];
    __syncthreads();

    int at = threadIdx.x % 32 * stride;
    int sum = 0;
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
        for (int read = 0; read < READS; ++read)
            sum += total(s[at + read * 32]);
        at += zero;
    }

    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// y[j][i] = x[i][j] of an n x n matrix, n a multiple of 32; a block of 256 threads a tile. Both matrices are touched
// by rows, so that global memory sees whole lines; the turn is left to the tile, which is read by columns.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int n)
{
    __shared__ float tile[TILE][TILE + PAD];
    int across = n / TILE;
    int top = blockIdx.x / across * TILE, left = blockIdx.x % across * TILE;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

#pragma unroll
    for (int row = 0; row < TILE; row += ROWS)
        tile[row + warp][lane] = x[(top + row + warp) * n + left + lane];
    __syncthreads();

#pragma unroll
    for (int row = 0; row < TILE; row += ROWS)
        y[(left + row + warp) * n + top + lane] = tile[lane][row + warp];
}
