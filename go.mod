module moltisfs

go 1.26.0

require (
	github.com/gabriel-vasile/mimetype v1.4.16
	github.com/klippa-app/go-pdfium v1.19.8
	github.com/tetratelabs/wazero v1.12.0
	github.com/wlynxg/chardet v1.0.5
	golang.org/x/image v0.47.0
	golang.org/x/text v0.43.0
)

require (
	github.com/ebitengine/purego v0.10.1 // indirect
	github.com/gen2brain/avif v0.5.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/jolestar/go-commons-pool/v2 v2.1.2 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/ledongthuc/pdf v0.0.0-20260907135840-6c8c28e0e8a0 // indirect
	github.com/ulikunitz/xz v0.5.15 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
