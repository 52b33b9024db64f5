#!/bin/sh
# One picture in many formats: 60 x 40 pixels, quarters red, green, blue and yellow (clockwise from top left: red, green, yellow,
# blue), which tells every turn and mirror from every other.
set -eu
work=$1 out=$2/image refused=$2/refused
im=${IM:-convert-im6.q16}
"$im" -size 30x20 xc:'#e01010' xc:'#10c010' +append "$work/top.png"
"$im" -size 30x20 xc:'#1010e0' xc:'#e0e010' +append "$work/bottom.png"
"$im" "$work/top.png" "$work/bottom.png" -append -strip PNG24:"$work/base.png"
base=$work/base.png
set -- -strip -define png:exclude-chunks=date,time
"$im" "$base" "$@" PNG24:"$out/rgb.png"
"$im" "$base" "$@" PNG8:"$out/palette.png"
"$im" "$base" "$@" PNG48:"$out/rgb16.png"
"$im" "$base" "$@" -interlace PNG PNG24:"$out/interlaced.png"
"$im" "$base" "$@" -colorspace Gray -depth 8 "$out/gray.png"
"$im" "$base" "$@" -alpha set -channel A -evaluate set 50% PNG32:"$out/alpha.png"
"$im" "$base" "$@" -colorspace Gray -threshold 40% -depth 1 "$out/bilevel.png"
"$im" "$base" -strip -quality 92 -sampling-factor 2x2 "$out/baseline.jpg"
"$im" "$base" -strip -quality 92 -sampling-factor 1x1 -interlace JPEG "$out/progressive.jpg"
"$im" "$base" -strip -quality 92 -sampling-factor 4x1 "$out/sampled411.jpg"
"$im" "$base" -strip -quality 92 -colorspace Gray "$out/gray.jpg"
"$im" "$base" -strip -quality 92 -colorspace CMYK "$out/cmyk.jpg"
"$im" "$base" -strip "$out/still.gif"
"$im" -delay 10 "$base" \( "$base" -negate \) \( "$base" -flip \) -strip -loop 0 "$out/animated.gif"
"$im" "$base" -strip BMP3:"$out/rgb24.bmp"
"$im" "$base" -strip -alpha set BMP:"$out/rgba32.bmp"
"$im" "$base" -strip -type Palette -compress none BMP3:"$out/palette.bmp"
for c in none lzw zip; do "$im" "$base" -strip -compress $c "$out/$c.tiff"; done
"$im" "$base" -strip -compress jpeg -quality 92 "$refused/jpeg.tiff"
"$im" "$base" -strip -depth 16 -compress lzw "$out/rgb16.tiff"
"$im" "$base" -strip -colorspace CMYK -compress lzw "$refused/cmyk.tiff"
tiffcp -p separate "$out/none.tiff" "$refused/planes.tiff"
"$im" "$base" -strip -colorspace Gray -threshold 40% -compress Group4 "$out/group4.tiff"
cwebp -quiet -q 90 "$base" -o "$out/lossy.webp"
cwebp -quiet -lossless "$base" -o "$out/lossless.webp"
cwebp -quiet -q 90 "$out/alpha.png" -o "$out/alpha.webp"
gif2webp -quiet "$out/animated.gif" -o "$refused/animated.webp"
avifenc --min 5 --max 10 -y 444 "$base" "$out/still.avif" >/dev/null
heif-enc -q 90 "$base" -o "$out/still.heic" >/dev/null 2>&1
# 4:2:2, 4:4:4, grey, 10 bits, and a size with odd sides and rows longer than the least that a decoder allocates
heif-enc -q 90 -p chroma=422 "$base" -o "$out/half.heic" >/dev/null 2>&1
heif-enc -q 90 -p chroma=444 "$base" -o "$out/full.heic" >/dev/null 2>&1
"$im" "$out/gray.png" -scale '120x80!' -depth 8 "$work/gray.png"
heif-enc -q 90 "$work/gray.png" -o "$out/gray.heic" >/dev/null 2>&1
heif-enc -q 90 -b 10 "$out/rgb16.png" -o "$out/deep.heic" >/dev/null 2>&1
"$im" "$base" -scale '301x203!' PNG24:"$work/odd.png"
heif-enc -q 90 "$work/odd.png" -o "$out/odd.heic" >/dev/null 2>&1
cat >"$out/drawing.svg" <<'T'
<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><rect width="30" height="20" fill="#e01010"/><text x="5" y="35">svg is text</text></svg>
T
