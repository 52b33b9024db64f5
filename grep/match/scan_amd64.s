//go:build amd64 && !purego && !noasm

#include "textflag.h"

// func pairScanAVX2(p unsafe.Pointer, n int, q *pair) int
// The first i in [0,n) with p[i+o1]|f1 == b1, p[i+o2]|f2 == b2 and the eight bytes at p+i, under fold and mask, equal to word; else -1.
// Wants n >= 32 and reads p[0:n+max(o2,7)], no more.
TEXT ·pairScanAVX2(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ q+16(FP), BX
	VPBROADCASTB 0(BX), Y0     // b1
	VPBROADCASTB 1(BX), Y1     // b2
	VPBROADCASTB 2(BX), Y2     // f1
	VPBROADCASTB 3(BX), Y3     // f2
	MOVQ 8(BX), DI             // o1
	MOVQ 16(BX), DX            // o2
	MOVQ 24(BX), R11           // word
	MOVQ 32(BX), R12           // fold
	MOVQ 40(BX), R13           // mask
	ADDQ SI, DI
	ADDQ SI, DX
	XORQ AX, AX
	MOVQ CX, R8
	SUBQ $64, R8               // last start of a 64-byte block
	JLT  small
wide:
	VPOR (DI)(AX*1), Y2, Y4
	VPOR (DX)(AX*1), Y3, Y5
	VPOR 32(DI)(AX*1), Y2, Y6
	VPOR 32(DX)(AX*1), Y3, Y7
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
	VPOR (DI)(AX*1), Y2, Y4
	VPOR (DX)(AX*1), Y3, Y5
	VPCMPEQB Y4, Y0, Y4
	VPCMPEQB Y5, Y1, Y5
	VPAND Y4, Y5, Y4
	VPMOVMSKB Y4, R10
	TESTL R10, R10
	JNZ  verifysmall
	ADDQ $32, AX
	JMP  small
hitwide:
	VPMOVMSKB Y4, R10
	VPMOVMSKB Y6, R9
	SHLQ $32, R9
	ORQ  R9, R10
verifywide:
	BSFQ R10, BX
	ADDQ AX, BX
	MOVQ (SI)(BX*1), R9
	ORQ  R12, R9
	ANDQ R13, R9
	CMPQ R9, R11
	JEQ  found
	LEAQ -1(R10), R9
	ANDQ R9, R10
	JNZ  verifywide
	ADDQ $64, AX
	CMPQ AX, R8
	JLE  wide
	JMP  small
verifysmall:
	BSFQ R10, BX
	ADDQ AX, BX
	MOVQ (SI)(BX*1), R9
	ORQ  R12, R9
	ANDQ R13, R9
	CMPQ R9, R11
	JEQ  found
	LEAQ -1(R10), R9
	ANDQ R9, R10
	JNZ  verifysmall
	ADDQ $32, AX
	JMP  small
found:
	VZEROUPPER
	MOVQ BX, ret+24(FP)
	RET
none:
	VZEROUPPER
	MOVQ $-1, ret+24(FP)
	RET

// A byte of hits is not 0 when some bucket holds all three bytes at its place.
#define MASKS(off, hits) \
	VMOVDQU off(SI)(AX*1), Y7 \
	VMOVDQU off(DX)(AX*1), Y8 \
	VMOVDQU off(BX)(AX*1), Y9 \
	VPAND Y7, Y6, Y10 \
	VPSRLW $4, Y7, Y7 \
	VPAND Y7, Y6, Y7 \
	VPSHUFB Y10, Y0, Y10 \
	VPSHUFB Y7, Y1, Y7 \
	VPAND Y8, Y6, Y11 \
	VPSRLW $4, Y8, Y8 \
	VPAND Y8, Y6, Y8 \
	VPSHUFB Y11, Y2, Y11 \
	VPSHUFB Y8, Y3, Y8 \
	VPAND Y9, Y6, Y12 \
	VPSRLW $4, Y9, Y9 \
	VPAND Y9, Y6, Y9 \
	VPSHUFB Y12, Y4, Y12 \
	VPSHUFB Y9, Y5, Y9 \
	VPAND Y10, Y7, Y10 \
	VPAND Y11, Y8, Y11 \
	VPAND Y12, Y9, Y12 \
	VPAND Y10, Y11, Y10 \
	VPAND Y10, Y12, hits

// func maskScanAVX2(p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int) (count, at int)
// m holds six tables of 16 bytes: for each of three places, eight buckets by low nibble and by high nibble. Writes up to room
// blocks of 64 bytes in which at some i of [0,n) a bucket holds all of p[i], p[i+o1], p[i+o2]: where the block begins and a bit for
// each such byte. at is how far it came. Wants n >= 64, room > 0 and reads p[0:n+max(o1,o2)], no more. The last block may overlap
// the one before.
TEXT ·maskScanAVX2(SB), NOSPLIT, $0-72
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
	MOVQ out+40(FP), DI
	MOVQ room+48(FP), R12
	ADDQ SI, DX
	ADDQ SI, BX
	MOVQ $0x0f, R9
	MOVQ R9, X6
	VPBROADCASTB X6, Y6
	VPXOR Y15, Y15, Y15
	XORQ AX, AX
	XORQ R13, R13              // blocks written
	MOVQ CX, R8
	SUBQ $64, R8               // last start of a block
block:
	MASKS(0, Y13)
	MASKS(32, Y14)
	VPOR Y13, Y14, Y10
	VPTEST Y10, Y10
	JNZ  found
next:
	ADDQ $64, AX
	CMPQ AX, R8
	JLE  block
	CMPQ AX, CX
	JGE  done
	MOVQ R8, AX
	JMP  block
found:
	VPCMPEQB Y13, Y15, Y13
	VPCMPEQB Y14, Y15, Y14
	VPMOVMSKB Y13, R10
	VPMOVMSKB Y14, R11
	SHLQ $32, R11
	ORQ  R11, R10
	NOTQ R10
	MOVQ AX, (DI)
	MOVQ R10, 8(DI)
	ADDQ $16, DI
	INCQ R13
	CMPQ R13, R12
	JLT  next
	ADDQ $64, AX
done:
	VZEROUPPER
	MOVQ R13, count+56(FP)
	MOVQ AX, at+64(FP)
	RET

// func asciiScanAVX2(p unsafe.Pointer, n int) int
// The first i in [0,n) with p[i] >= 0x80 or p[i] == 0x1b, else n. Wants n >= 32 and reads p[0:n], no more.
TEXT ·asciiScanAVX2(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ $0x1b, AX
	MOVQ AX, X0
	VPBROADCASTB X0, Y0
	XORQ AX, AX
	MOVQ CX, R8
	SUBQ $32, R8               // last start of a block
plain:
	VMOVDQU (SI)(AX*1), Y1
	VPCMPEQB Y1, Y0, Y2
	VPOR Y1, Y2, Y2            // its high bits: not plain
	VPMOVMSKB Y2, R10
	TESTL R10, R10
	JNZ  odd
	ADDQ $32, AX
	CMPQ AX, R8
	JLE  plain
	CMPQ AX, CX
	JEQ  done
	MOVQ R8, AX                // the last block overlaps the one before
	JMP  plain
odd:
	BSFL R10, R10
	ADDQ R10, AX
done:
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
