// What lane i of a warp receives, from a lane that the instruction names; no memory is touched.
//
//   shuffle_from   __shfl_sync        lane `operand` of its segment, taken modulo the width
//   shuffle_up     __shfl_up_sync     i - operand, or its own value if that lies before its segment
//   shuffle_down   __shfl_down_sync   i + operand, or its own value if that lies past its segment
//   shuffle_xor    __shfl_xor_sync    i ^ operand, or its own value if that lies past its segment
//
// A segment is `width` lanes: 2, 4, 8, 16 or all 32. Every lane brings an operand of its own. What the reduce
// ladder makes of shuffles is in reduce_ladder.cu.

#define EVERY_LANE 0xffffffff

extern "C" __global__ void shuffle_from(const int* x, const int* operand, int* y, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __shfl_sync(EVERY_LANE, x[i], operand[i], width);
}

extern "C" __global__ void shuffle_up(const int* x, const int* operand, int* y, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __shfl_up_sync(EVERY_LANE, x[i], operand[i], width);
}

extern "C" __global__ void shuffle_down(const int* x, const int* operand, int* y, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __shfl_down_sync(EVERY_LANE, x[i], operand[i], width);
}

extern "C" __global__ void shuffle_xor(const int* x, const int* operand, int* y, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __shfl_xor_sync(EVERY_LANE, x[i], operand[i], width);
}
