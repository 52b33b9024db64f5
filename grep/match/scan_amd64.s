//go:build amd64 && !purego && !noasm

#include "textflag.h"

// func pairScan(p unsafe.Pointer, n, d int, b1, b2, f1, f2 uint64) int
// The first i in [0,n) with p[i]|f1 == b1 && p[i+d]|f2 == b2, else -1. Wants n >= 32 and reads p[0:n+d], no more.
TEXT ·pairScan(SB), NOSPLIT, $0-64
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ d+16(FP), DX
	MOVQ b1+24(FP), X0
	MOVQ b2+32(FP), X1
	MOVQ f1+40(FP), X2
	MOVQ f2+48(FP), X3
	VPBROADCASTB X0, Y0
	VPBROADCASTB X1, Y1
	VPBROADCASTB X2, Y2
	VPBROADCASTB X3, Y3
	LEAQ (SI)(DX*1), DI
	XORQ AX, AX
	MOVQ CX, R8
	SUBQ $64, R8               // last start of a 64-byte block
	JLT  small
wide:
	VPOR (SI)(AX*1), Y2, Y4
	VPOR (DI)(AX*1), Y3, Y5
	VPOR 32(SI)(AX*1), Y2, Y6
	VPOR 32(DI)(AX*1), Y3, Y7
	VPCMPEQB Y4, Y0, Y4
	VPCMPEQB Y5, Y1, Y5
	VPCMPEQB Y6, Y0, Y6
	VPCMPEQB Y7, Y1, Y7
	VPAND Y4, Y5, Y4
	VPAND Y6, Y7, Y6
	VPOR Y4, Y6, Y8
	VPTEST Y8, Y8
	JNZ  hitwide
	ADDQ $64, AX
	CMPQ AX, R8
	JLE  wide
small:
	CMPQ AX, CX
	JGE  none
	MOVQ CX, R9
	SUBQ $32, R9
	CMPQ AX, R9
	CMOVQGT R9, AX             // the last block overlaps the one before
	VPOR (SI)(AX*1), Y2, Y4
	VPOR (DI)(AX*1), Y3, Y5
	VPCMPEQB Y4, Y0, Y4
	VPCMPEQB Y5, Y1, Y5
	VPAND Y4, Y5, Y4
	VPMOVMSKB Y4, R10
	TESTL R10, R10
	JNZ  hit
	ADDQ $32, AX
	JMP  small
hitwide:
	VPMOVMSKB Y4, R10
	TESTL R10, R10
	JNZ  hit
	VPMOVMSKB Y6, R10
	ADDQ $32, AX
hit:
	BSFL R10, R10
	ADDQ R10, AX
	VZEROUPPER
	MOVQ AX, ret+56(FP)
	RET
none:
	VZEROUPPER
	MOVQ $-1, ret+56(FP)
	RET

// func maskScan(p unsafe.Pointer, n, o1, o2 int, m *[96]byte) (at int, hits uint32)
// m holds six tables of 16 bytes: for each of three places, eight buckets by low nibble and by high nibble. Bit k of hits says
// that at p[at+k] some bucket holds all of p[at+k], p[at+k+o1], p[at+k+o2]; at is -1 when there is none in [0,n). Wants
// n >= 32 and reads p[0:n+max(o1,o2)], no more. The last block may overlap the one before.
TEXT ·maskScan(SB), NOSPLIT, $0-52
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ o1+16(FP), DX
	MOVQ o2+24(FP), BX
	MOVQ m+32(FP), DI
	VBROADCASTI128 (DI), Y0
	VBROADCASTI128 16(DI), Y1
	VBROADCASTI128 32(DI), Y2
	VBROADCASTI128 48(DI), Y3
	VBROADCASTI128 64(DI), Y4
	VBROADCASTI128 80(DI), Y5
	ADDQ SI, DX
	ADDQ SI, BX
	MOVQ $0x0f, R9
	MOVQ R9, X6
	VPBROADCASTB X6, Y6
	VPXOR Y15, Y15, Y15
	XORQ AX, AX
	SUBQ $32, CX               // last start of a block
block:
	VMOVDQU (SI)(AX*1), Y7
	VMOVDQU (DX)(AX*1), Y8
	VMOVDQU (BX)(AX*1), Y9
	VPAND Y7, Y6, Y10
	VPSRLW $4, Y7, Y7
	VPAND Y7, Y6, Y7
	VPSHUFB Y10, Y0, Y10
	VPSHUFB Y7, Y1, Y7
	VPAND Y8, Y6, Y11
	VPSRLW $4, Y8, Y8
	VPAND Y8, Y6, Y8
	VPSHUFB Y11, Y2, Y11
	VPSHUFB Y8, Y3, Y8
	VPAND Y9, Y6, Y12
	VPSRLW $4, Y9, Y9
	VPAND Y9, Y6, Y9
	VPSHUFB Y12, Y4, Y12
	VPSHUFB Y9, Y5, Y9
	VPAND Y10, Y7, Y10
	VPAND Y11, Y8, Y11
	VPAND Y12, Y9, Y12
	VPAND Y10, Y11, Y10
	VPAND Y10, Y12, Y10
	VPTEST Y10, Y10
	JNZ  found
	CMPQ AX, CX
	JEQ  nothing
	ADDQ $32, AX
	CMPQ AX, CX
	CMOVQGT CX, AX
	JMP  block
found:
	VPCMPEQB Y10, Y15, Y14
	VPMOVMSKB Y14, R10
	NOTL R10
	VZEROUPPER
	MOVQ AX, at+40(FP)
	MOVL R10, hits+48(FP)
	RET
nothing:
	VZEROUPPER
	MOVQ $-1, at+40(FP)
	MOVL $0, hits+48(FP)
	RET
