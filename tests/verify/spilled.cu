// SPDX-License-Identifier: Apache-2.0
// Drawn at random. With 24 registers ptxas keeps timestamps of records on the stack.
#include <iket_rewrite/iket.cuh>
__device__ __noinline__ float fn(float a,int k) { for(int i=0;i<k;++i) a=a*1.5f+__sinf(a+i); return a; }
extern "C" __global__ void  k(float* o, const float* in, int n, int m, double d, long long L) {
__shared__ float buf[512];
const int w=threadIdx.x>>5, lane=threadIdx.x&31; int x=n^lane; unsigned y=m+w; float f=in[threadIdx.x]; float acc[32];
for(int i=0;i<32;++i) acc[i]=in[i*7+lane];
const bool c0=in[1]>f,c1=in[2]>n,c2=in[3]>d,c3=L>in[4],c4=n>m,c5=lane<n,h0=(in[5]*2)>f,h1=__any_sync(~0u,in[6]>f);
for(int i=0;i<4;++i) { switch(x&7) { case 0: { IKET_MARK("e1", IKET_F32(__shfl_xor_sync(~0u,f,1)));x=x*y+4; y^=x>>3;
 } break;case 1: { IKET_RANGE_START("e2", IKET_F16(f));
d=d*1.5+f; L+=x*(long long)y;
asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory");
d=d*1.5+f; L+=x*(long long)y;
for(int i=0;i<32;++i) acc[i]=acc[i]*f+acc[(i+9)&31];
buf[threadIdx.x]=acc[17]; __syncwarp(); f+=buf[threadIdx.x^10];IKET_RANGE_END("e2", IKET_F16(f));
 } break;case 2: { acc[7]+=f*acc[21];
 } break;case 3: { acc[17]+=f*acc[13];
 } break; default: y+=1; }
{ IKET_RANGE("e3", IKET_I32(x));
if (__any_sync(~0u,f>4)) IKET_MARK("e4", IKET_I16(x));
acc[5]+=f*acc[17];}
IKET_MARK("e5");buf[threadIdx.x]=acc[26]; __syncwarp(); f+=buf[threadIdx.x^7];
 for(int i=0;i<32;++i) acc[i]=acc[i]*f+acc[(i+5)&31]; }
{ IKET_RANGE("e6", IKET_F32(__shfl_xor_sync(~0u,f,1)));
for(int i=0;i<3;++i) { IKET_MARK("e7", IKET_BF16(f));*(float2*)(buf+2*lane)=make_float2(f,acc[2]);
if (L*x>y) { switch(x&7) { case 0: { acc[22]+=f*acc[23];
 } break;case 1: { d=d*1.5+f; L+=x*(long long)y;
 } break;case 2: { d=d*1.5+f; L+=x*(long long)y;
 } break;case 3: { o[x&255]=y+L;
 } break; default: y+=1; }
 } else { if (c0 || w>0) IKET_MARK("e8");
 }
IKET_MARK("e9", IKET_BOOL((x&1)));o[x&255]=y+L;
IKET_MARK("e10", IKET_U64((unsigned long long)L));buf[threadIdx.x]=acc[15]; __syncwarp(); f+=buf[threadIdx.x^13];
 asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory"); }
if (__shfl_sync(~0u,x,3)>2) IKET_MARK("e11", IKET_U32(in[x&15]));
acc[15]+=f*acc[27];}
IKET_RANGE_START("e12", IKET_U8(y));
buf[threadIdx.x]=acc[12]; __syncwarp(); f+=buf[threadIdx.x^3];
switch(x&7) { case 0: { IKET_MARK("e13");x=x*y+2; y^=x>>3;
 } break;case 1: { for(int i=0;i<3;++i) { d=d*1.5+f; L+=x*(long long)y;
 asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory"); }
 } break; default: y+=1; }
for(int i=0;i<3;++i) { IKET_MARK("e14", IKET_U8(y));buf[threadIdx.x]=acc[11]; __syncwarp(); f+=buf[threadIdx.x^9];
o[x&255]=y+L;
if (!(d<f)) IKET_MARK("e15", IKET_I16(x));
buf[threadIdx.x]=acc[4]; __syncwarp(); f+=buf[threadIdx.x^0];
 d=d*1.5+f; L+=x*(long long)y; }
acc[8]+=f*acc[24];IKET_RANGE_END("e12", IKET_U8(y));
if (w==2) { switch(x&7) { case 0: { IKET_RANGE_PUSH("e16", IKET_I16(x));
x=x*y+4; y^=x>>3;
asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory");
d=d*1.5+f; L+=x*(long long)y;
d=d*1.5+f; L+=x*(long long)y;
asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory");IKET_RANGE_POP();
 } break;case 1: { switch(x&7) { case 0: { for(int i=0;i<32;++i) acc[i]=acc[i]*f+acc[(i+28)&31];
 } break;case 1: { acc[28]+=f*acc[21];
 } break;case 2: { *(float2*)(buf+2*lane)=make_float2(f,acc[2]);
 } break;case 3: { *(float2*)(buf+2*lane)=make_float2(f,acc[2]);
 } break; default: y+=1; }
 } break; default: y+=1; }
IKET_MARK("e17", IKET_BF16(f));o[x&255]=y+L;
 } else { { IKET_RANGE("e18", IKET_F32(acc[3]));
{ IKET_RANGE("e19", IKET_I16(x));
IKET_MARK("e20");acc[15]+=f*acc[5];
IKET_RANGE_START("e21", IKET_F64(d*f));
o[x&255]=y+L;
asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory");IKET_RANGE_END("e21", IKET_F64(d*f));
d=d*1.5+f; L+=x*(long long)y;}
{ IKET_RANGE("e22", IKET_U32(7u));
if (h1) IKET_MARK("e23", IKET_F32(f));
acc[11]+=f*acc[29];}
buf[threadIdx.x]=acc[17]; __syncwarp(); f+=buf[threadIdx.x^30];}
 }
IKET_MARK("e24", IKET_U16(y));acc[1]+=f*acc[19];
IKET_RANGE_START("e25", IKET_F32(f));
if (blockIdx.x==0) IKET_MARK("e26", IKET_F64(d*f));
asm volatile("st.shared.v2.b32 [%0], {%1,%2};"::"r"(lane*8),"r"(x),"r"(y):"memory");
for(int i=0;i<32;++i) acc[i]=acc[i]*f+acc[(i+27)&31];
acc[0]+=f*acc[2];IKET_RANGE_END("e25", IKET_F32(f));

float s=0; for(int i=0;i<32;++i) s+=acc[i]*(c0+2*c1+3*c2+c3*4+c4*5+c5*6+h0+h1); o[threadIdx.x]=s+d+L+x+y+f;
}
