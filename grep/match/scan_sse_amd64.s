//go:build amd64 && !purego && !noasm

#include "textflag.h"

// The byte at from in all bytes of to; R9 is all bytes 1.
#define SPREAD(from, to) \
	MOVBQZX from, R10 \
	IMULQ R9, R10 \
	MOVQ R10, to \
	PUNPCKLQDQ to, to

// A byte of hits is all ones where both bytes of the pair are.
#define PAIR(off, hits, second) \
	MOVOU off(DI)(AX*1), hits \
	MOVOU off(DX)(AX*1), second \
	POR X2, hits \
	POR X3, second \
	PCMPEQB X0, hits \
	PCMPEQB X1, second \
	PAND second, hits

// func pairScanSSE2(p unsafe.Pointer, n int, q *pair) int
// As pairScanAVX2.
TEXT ·pairScanSSE2(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ q+16(FP), BX
	MOVQ $0x0101010101010101, R9
	SPREAD(0(BX), X0)          // b1
	SPREAD(1(BX), X1)          // b2
	SPREAD(2(BX), X2)          // f1
	SPREAD(3(BX), X3)          // f2
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
	PAIR(0, X4, X8)
	PAIR(16, X5, X9)
	PAIR(32, X6, X10)
	PAIR(48, X7, X11)
	MOVO X4, X8
	MOVO X6, X9
	POR  X5, X8
	POR  X7, X9
	POR  X8, X9
	PMOVMSKB X9, R10
	TESTL R10, R10
	JNZ  hitwide
	ADDQ $64, AX
	CMPQ AX, R8
	JLE  wide
small:
	CMPQ AX, CX
	JGE  none
	MOVQ CX, R9
	SUBQ $16, R9
	CMPQ AX, R9
	CMOVQGT R9, AX             // the last block overlaps the one before
	PAIR(0, X4, X8)
	PMOVMSKB X4, R10
	TESTL R10, R10
	JNZ  verifysmall
	ADDQ $16, AX
	JMP  small
hitwide:
	PMOVMSKB X4, R10
	PMOVMSKB X5, R9
	SHLQ $16, R9
	ORQ  R9, R10
	PMOVMSKB X6, R9
	SHLQ $32, R9
	ORQ  R9, R10
	PMOVMSKB X7, R9
	SHLQ $48, R9
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
	ADDQ $16, AX
	JMP  small
found:
	MOVQ BX, ret+24(FP)
	RET
none:
	MOVQ $-1, ret+24(FP)
	RET

// A byte of hits is not 0 when some bucket holds the byte of this place by both its nibbles.
#define MASK(off, place, low, high, hits) \
	MOVOU off(place)(AX*1), X7 \
	MOVO X7, X8 \
	PAND X6, X7 \
	PSRLW $4, X8 \
	PAND X6, X8 \
	MOVO low, hits \
	MOVO high, X9 \
	PSHUFB X7, hits \
	PSHUFB X8, X9 \
	PAND X9, hits

#define MASKS(off, hits) \
	MASK(off, SI, X0, X1, hits) \
	MASK(off, DX, X2, X3, X10) \
	MASK(off, BX, X4, X5, X11) \
	PAND X10, hits \
	PAND X11, hits

// func maskScanSSSE3(p unsafe.Pointer, n, o1, o2 int, m *[96]byte, out *blockHits, room int) (count, at int)
// As maskScanAVX2.
TEXT ·maskScanSSSE3(SB), NOSPLIT, $0-72
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ o1+16(FP), DX
	MOVQ o2+24(FP), BX
	MOVQ m+32(FP), DI
	MOVOU (DI), X0
	MOVOU 16(DI), X1
	MOVOU 32(DI), X2
	MOVOU 48(DI), X3
	MOVOU 64(DI), X4
	MOVOU 80(DI), X5
	MOVQ out+40(FP), DI
	MOVQ room+48(FP), R12
	ADDQ SI, DX
	ADDQ SI, BX
	MOVQ $0x0f0f0f0f0f0f0f0f, R9
	MOVQ R9, X6
	PUNPCKLQDQ X6, X6
	XORQ AX, AX
	XORQ R13, R13              // blocks written
	MOVQ CX, R8
	SUBQ $64, R8               // last start of a block
block:
	PREFETCHT0 1024(SI)(AX*1)  // too many instructions a line for the loads to run ahead; never faults
	MASKS(0, X12)
	MASKS(16, X13)
	MASKS(32, X14)
	MASKS(48, X15)
	MOVO X12, X7
	MOVO X14, X8
	POR  X13, X7
	POR  X15, X8
	POR  X8, X7
	PXOR X9, X9
	PCMPEQB X9, X7
	PMOVMSKB X7, R10
	CMPL R10, $0xffff
	JNE  found
next:
	ADDQ $64, AX
	CMPQ AX, R8
	JLE  block
	CMPQ AX, CX
	JGE  done
	MOVQ R8, AX
	JMP  block
found:
	PCMPEQB X9, X12
	PCMPEQB X9, X13
	PCMPEQB X9, X14
	PCMPEQB X9, X15
	PMOVMSKB X12, R10
	PMOVMSKB X13, R11
	SHLQ $16, R11
	ORQ  R11, R10
	PMOVMSKB X14, R11
	SHLQ $32, R11
	ORQ  R11, R10
	PMOVMSKB X15, R11
	SHLQ $48, R11
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
	MOVQ R13, count+56(FP)
	MOVQ AX, at+64(FP)
	RET
