package readers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/structs"
)

const (
	// pageAnnotations is how many annotations of a page are read. A field costs some twenty calls into the sandbox.
	pageAnnotations = 2000
	// emptyFields is how many fields without a value are named.
	emptyFields = 60
	// fieldOptions is how many options of a list are looked at.
	fieldOptions = 1000
	// tipBytes is how much of a field's description stands beside its name.
	tipBytes = 80
)

// formTurn is held while a form is open in any sandbox of this process. The package finds whose callback it is by an
// address inside the sandbox, and two sandboxes have the same addresses.
var formTurn = make(chan struct{}, 1)

// withForms runs f while no other form is open.
func withForms(ctx context.Context, f func() error) error {
	select {
	case formTurn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-formTurn }()
	return f()
}

// annotations is what lies over a page: form fields, notes, stamps. They are not part of the page's own text.
type annotations struct {
	in  engine.Pdfium
	at  requests.Page
	doc references.FPDF_DOCUMENT

	form   *references.FPDF_FORMHANDLE
	fields []formField
	notes  []string
	mute   map[string]int // by kind, those that are drawn and have no text
	unread int
	drawn  bool // a viewer shows at least one
}

type formField struct{ name, tip, value string }

// readAnnotations reads the first so many annotations of a page. What can't be read is counted.
func readAnnotations(ctx context.Context, in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, count int) (*annotations, error) {
	a := &annotations{in: in, at: at, doc: doc, mute: map[string]int{}}
	defer a.closeForm()
	for i := range min(count, pageAnnotations) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.read(i); err != nil {
			a.unread++
		}
	}
	a.unread += max(count-pageAnnotations, 0)
	return a, ctx.Err()
}

func (a *annotations) read(index int) error {
	got, err := a.in.FPDFPage_GetAnnot(&requests.FPDFPage_GetAnnot{Page: a.at, Index: index})
	if err != nil {
		return err
	}
	annot := got.Annotation
	defer a.in.FPDFPage_CloseAnnot(&requests.FPDFPage_CloseAnnot{Annotation: annot})
	kind, err := a.in.FPDFAnnot_GetSubtype(&requests.FPDFAnnot_GetSubtype{Annotation: annot})
	if err != nil {
		return err
	}
	switch kind.Subtype {
	case enums.FPDF_ANNOT_SUBTYPE_LINK, enums.FPDF_ANNOT_SUBTYPE_POPUP: // the page shows what is linked, the popup's parent has its text
		return nil
	}
	flags, err := a.in.FPDFAnnot_GetFlags(&requests.FPDFAnnot_GetFlags{Annotation: annot})
	if err != nil {
		return err
	}
	hidden := flags.Flags&(enums.FPDF_ANNOT_FLAG_HIDDEN|enums.FPDF_ANNOT_FLAG_NOVIEW) != 0
	a.drawn = a.drawn || !hidden
	if kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_WIDGET {
		return a.field(annot, hidden)
	}
	label := "annotation"
	if author := a.text(annot, "T"); author != "" {
		label += " by " + clip(strings.ReplaceAll(author, "\n", " "), tipBytes)
	}
	if hidden {
		label += ", hidden"
	}
	if text := a.text(annot, "Contents"); text != "" {
		a.notes = append(a.notes, "["+label+"] "+indented(text))
		if kind.Subtype != enums.FPDF_ANNOT_SUBTYPE_FREETEXT {
			// To draw the page, the engine would lay out a closed popup for each, which nobody sees and takes 10 ms.
			a.in.FPDFAnnot_SetStringValue(&requests.FPDFAnnot_SetStringValue{Annotation: annot, Key: "Contents"})
		}
	} else if !hidden {
		a.mute[annotationKind(kind.Subtype)]++
	}
	return nil
}

// text is a string of the annotation's dictionary.
func (a *annotations) text(annot references.FPDF_ANNOTATION, key string) string {
	got, err := a.in.FPDFAnnot_GetStringValue(&requests.FPDFAnnot_GetStringValue{Annotation: annot, Key: key})
	if err != nil {
		return ""
	}
	return cleanPageText(got.Value)
}

// openForm makes the sandbox know the document's fields. What a form may call back does nothing.
func (a *annotations) openForm() (references.FPDF_FORMHANDLE, error) {
	if a.form != nil {
		return *a.form, nil
	}
	got, err := a.in.FPDFDOC_InitFormFillEnvironment(&requests.FPDFDOC_InitFormFillEnvironment{Document: a.doc, FormFillInfo: structs.FPDF_FORMFILLINFO{
		FFI_Invalidate:         func(references.FPDF_PAGE, float64, float64, float64, float64) {},
		FFI_SetCursor:          func(enums.FXCT) {},
		FFI_SetTimer:           func(int, func(int)) int { return 0 },
		FFI_KillTimer:          func(int) {},
		FFI_GetLocalTime:       func() structs.FPDF_SYSTEMTIME { return structs.FPDF_SYSTEMTIME{} },
		FFI_OnChange:           func() {},
		FFI_GetPage:            func(references.FPDF_DOCUMENT, int) *references.FPDF_PAGE { return nil },
		FFI_GetRotation:        func(references.FPDF_PAGE) enums.FPDF_PAGE_ROTATION { return 0 },
		FFI_ExecuteNamedAction: func(string) {},
		FFI_SetTextFieldFocus:  func(string, bool) {},
		FFI_DoURIAction:        func(string) {},
		FFI_DoGoToAction:       func(int, enums.FPDF_ZOOM_MODE, []float32) {},
	}})
	if err != nil {
		return "", err
	}
	a.form = &got.FormHandle
	_, err = a.in.FORM_OnAfterLoadPage(&requests.FORM_OnAfterLoadPage{Page: a.at, FormHandle: got.FormHandle})
	return got.FormHandle, err
}

func (a *annotations) closeForm() {
	if a.form != nil {
		a.in.FORM_OnBeforeClosePage(&requests.FORM_OnBeforeClosePage{Page: a.at, FormHandle: *a.form})
		a.in.FPDFDOC_ExitFormFillEnvironment(&requests.FPDFDOC_ExitFormFillEnvironment{FormHandle: *a.form})
	}
}

// field reads one widget. The buttons of a radio group, and a field that stands in several places, are one field.
func (a *annotations) field(annot references.FPDF_ANNOTATION, hidden bool) error {
	form, err := a.openForm()
	if err != nil {
		return err
	}
	kind, err := a.in.FPDFAnnot_GetFormFieldType(&requests.FPDFAnnot_GetFormFieldType{FormHandle: form, Annotation: annot})
	if err != nil || kind.FormFieldType == enums.FPDF_FORMFIELD_TYPE_PUSHBUTTON {
		return err
	}
	f := formField{name: "(no name)"}
	if got, err := a.in.FPDFAnnot_GetFormFieldName(&requests.FPDFAnnot_GetFormFieldName{FormHandle: form, Annotation: annot}); err == nil && got.FormFieldName != "" {
		f.name = oneLine(got.FormFieldName)
	}
	if hidden {
		f.name += ", hidden"
	}
	if got, err := a.in.FPDFAnnot_GetFormFieldAlternateName(&requests.FPDFAnnot_GetFormFieldAlternateName{FormHandle: form, Annotation: annot}); err == nil {
		f.tip = clip(oneLine(got.FormFieldAlternateName), tipBytes)
	}
	if f.value, err = a.fieldValue(form, annot, kind.FormFieldType); err != nil {
		return err
	}
	same := slices.IndexFunc(a.fields, func(o formField) bool {
		return o.name == f.name && (o.value == f.value || o.value == "" || f.value == "")
	})
	switch {
	case same < 0:
		a.fields = append(a.fields, f)
	case a.fields[same].value == "":
		a.fields[same].value = f.value
	}
	return nil
}

func (a *annotations) fieldValue(form references.FPDF_FORMHANDLE, annot references.FPDF_ANNOTATION, kind enums.FPDF_FORMFIELD_TYPE) (string, error) {
	value := func() (string, error) {
		got, err := a.in.FPDFAnnot_GetFormFieldValue(&requests.FPDFAnnot_GetFormFieldValue{FormHandle: form, Annotation: annot})
		if err != nil {
			return "", err
		}
		return cleanPageText(got.FormFieldValue), nil
	}
	switch kind {
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX, enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		checked, err := a.in.FPDFAnnot_IsChecked(&requests.FPDFAnnot_IsChecked{FormHandle: form, Annotation: annot})
		if err != nil || !checked.IsChecked {
			return "", err
		}
		got, err := a.in.FPDFAnnot_GetFormFieldExportValue(&requests.FPDFAnnot_GetFormFieldExportValue{FormHandle: form, Annotation: annot})
		if kind == enums.FPDF_FORMFIELD_TYPE_CHECKBOX || err != nil || got.Value == "" {
			return "checked", nil
		}
		return oneLine(got.Value), nil
	case enums.FPDF_FORMFIELD_TYPE_COMBOBOX, enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		var chosen []string
		count, err := a.in.FPDFAnnot_GetOptionCount(&requests.FPDFAnnot_GetOptionCount{FormHandle: form, Annotation: annot})
		for i := 0; err == nil && i < min(count.OptionCount, fieldOptions); i++ {
			is, err := a.in.FPDFAnnot_IsOptionSelected(&requests.FPDFAnnot_IsOptionSelected{FormHandle: form, Annotation: annot, Index: i})
			if err != nil || !is.IsOptionSelected {
				continue
			}
			if got, err := a.in.FPDFAnnot_GetOptionLabel(&requests.FPDFAnnot_GetOptionLabel{FormHandle: form, Annotation: annot, Index: i}); err == nil {
				chosen = append(chosen, oneLine(got.OptionLabel))
			}
		}
		if len(chosen) > 0 {
			return strings.Join(chosen, "; "), nil
		}
	case enums.FPDF_FORMFIELD_TYPE_SIGNATURE:
		if got, err := a.in.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: annot, Key: "V"}); err == nil && got.HasKey {
			return "signed (the signature was not checked)", nil
		}
		return "", nil
	}
	return value()
}

// String is what is read of them, a labelled line each.
func (a *annotations) String() string {
	var lines, empty []string
	for _, f := range a.fields {
		if f.tip != "" && f.tip != f.name {
			f.name += " (" + f.tip + ")"
		}
		if f.value == "" {
			empty = append(empty, f.name)
			continue
		}
		lines = append(lines, "[form] "+f.name+": "+indented(f.value))
	}
	if more := len(empty) - emptyFields; more > 0 {
		empty = append(empty[:emptyFields], fmt.Sprintf("and %d more", more))
	}
	if len(empty) > 0 {
		lines = append(lines, "[form] empty or not checked: "+strings.Join(empty, ", "))
	}
	lines = append(lines, a.notes...)
	if len(a.mute) > 0 {
		var kinds []string
		for kind, n := range a.mute {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
		}
		slices.Sort(kinds)
		lines = append(lines, "[annotation] without text: "+strings.Join(kinds, ", "))
	}
	if a.unread > 0 {
		lines = append(lines, fmt.Sprintf("[annotation] not read: %d of the form fields and annotations of this page", a.unread))
	}
	return strings.Join(lines, "\n")
}

// indented sets the further lines of a value off from the page's own.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

func oneLine(s string) string { return strings.Join(strings.Fields(cleanPageText(s)), " ") }

func annotationKind(k enums.FPDF_ANNOTATION_SUBTYPE) string {
	names := map[enums.FPDF_ANNOTATION_SUBTYPE]string{
		enums.FPDF_ANNOT_SUBTYPE_TEXT: "note", enums.FPDF_ANNOT_SUBTYPE_FREETEXT: "text box", enums.FPDF_ANNOT_SUBTYPE_HIGHLIGHT: "highlight",
		enums.FPDF_ANNOT_SUBTYPE_UNDERLINE: "underline", enums.FPDF_ANNOT_SUBTYPE_SQUIGGLY: "underline", enums.FPDF_ANNOT_SUBTYPE_STRIKEOUT: "strikeout",
		enums.FPDF_ANNOT_SUBTYPE_STAMP: "stamp", enums.FPDF_ANNOT_SUBTYPE_INK: "ink", enums.FPDF_ANNOT_SUBTYPE_FILEATTACHMENT: "attached file",
		enums.FPDF_ANNOT_SUBTYPE_REDACT: "redaction",
	}
	if name := names[k]; name != "" {
		return name
	}
	return "drawing"
}
