//go:build !packed

package pdf

import (
	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
)

func sandbox(c webassembly.Config) (engine.Pool, error) { return webassembly.Init(c) }
