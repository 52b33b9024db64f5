package pdf

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	engine "github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/responses"
	"github.com/klippa-app/go-pdfium/structs"

	"moltisfs/readers/unreadable"
)

const (
	// pageAnnotations is how many annotations of a page are read. A field costs some twenty calls
	// into the sandbox.
	pageAnnotations = 2000
	// emptyFields is how many fields without a value are named.
	emptyFields = 60
	// fieldOptions is how many options of a list are looked at.
	fieldOptions = 1000
	// shownOptions is how many options of a list are named that are not selected.
	shownOptions = 60
	// pageLooks is how many signatures and stamps of a page are read from their pictures.
	pageLooks = 50
	// tipBytes is how much of a field's description stands beside its name.
	tipBytes = 80
)

// formTurn is held while a form is open in any sandbox of this process. The package finds whose
// callback it is by an address inside the sandbox, and two sandboxes have the same addresses.
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

// annotations are the things over a page: form fields, notes, stamps. They are not part of the
// page's own text.
type annotations struct {
	in  engine.Pdfium
	at  requests.Page
	doc references.FPDF_DOCUMENT

	form   *references.FPDF_FORMHANDLE
	fields []formField
	notes  []string
	looks  []look
	mute   int // that are drawn and have no text
	unread int
	drawn  bool // a viewer shows at least one
}

type formField struct{ name, tip, value string }

// look is where something stands whose words are in its picture alone.
type look struct {
	name string
	rect structs.FPDF_FS_RECTF
}

// readAll reads the first so many annotations of a page. Those that can't be read are counted.
func (a *annotations) readAll(ctx context.Context, count int) error {
	defer a.closeForm()
	for i := range min(count, pageAnnotations) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.read(i); err != nil {
			a.unread++
		}
	}
	a.unread += max(count-pageAnnotations, 0)
	return ctx.Err()
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
	case enums.FPDF_ANNOT_SUBTYPE_LINK, enums.FPDF_ANNOT_SUBTYPE_POPUP:
		return nil // the page shows a link's text, and the popup's parent has its text
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
		label += " by " + unreadable.Clip(strings.ReplaceAll(author, "\n", " "), tipBytes)
	}
	if hidden {
		label += ", hidden"
	}
	if text := a.text(annot, "Contents"); text != "" {
		a.notes = append(a.notes, "["+label+"] "+indented(text))
		if kind.Subtype != enums.FPDF_ANNOT_SUBTYPE_FREETEXT {
			// To draw the page, the engine would lay out a closed popup for each, which nobody sees
			// and takes 10 ms.
			q := &requests.FPDFAnnot_SetStringValue{Annotation: annot, Key: "Contents"}
			a.in.FPDFAnnot_SetStringValue(q)
		}
	} else if !hidden {
		a.mute++
		if kind.Subtype == enums.FPDF_ANNOT_SUBTYPE_STAMP {
			a.look(annot, "["+label+"]")
		}
	}
	return nil
}

func (a *annotations) look(annot references.FPDF_ANNOTATION, name string) {
	got, err := a.in.FPDFAnnot_GetRect(&requests.FPDFAnnot_GetRect{Annotation: annot})
	if err == nil && len(a.looks) < pageLooks {
		a.looks = append(a.looks, look{name, got.Rect})
	}
}

// appearances are the words that stand in the pictures of a page's signatures and stamps: these are drawn into the page, which is loaded
// anew. It comes after all else with the page.
func appearances(in engine.Pdfium, doc references.FPDF_DOCUMENT, at requests.Page, number int, looks []look) string {
	done, err := in.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: at, Usage: requests.FPDFPage_FlattenUsageNormalDisplay})
	if err != nil || done.Result != responses.FPDFPage_FlattenResultSuccess {
		return ""
	}
	page, err := in.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: number - 1})
	if err != nil {
		return ""
	}
	defer in.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: page.Page})
	text, err := in.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: requests.Page{ByReference: &page.Page}})
	if err != nil {
		return ""
	}
	defer in.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
	var b strings.Builder
	for _, l := range looks {
		got, err := in.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{TextPage: text.TextPage,
			Left: float64(l.rect.Left), Top: float64(l.rect.Top), Right: float64(l.rect.Right), Bottom: float64(l.rect.Bottom)})
		if err != nil {
			continue
		}
		if words := cleanPageText(strings.TrimRight(got.Text, "\x00")); words != "" {
			b.WriteString("\n" + l.name + " shows: " + indented(words))
		}
	}
	return b.String()
}

// text is a string of the annotation's dictionary.
func (a *annotations) text(annot references.FPDF_ANNOTATION, key string) string {
	q := &requests.FPDFAnnot_GetStringValue{Annotation: annot, Key: key}
	got, err := a.in.FPDFAnnot_GetStringValue(q)
	if err != nil {
		return ""
	}
	return cleanPageText(got.Value)
}

// openForm makes the sandbox know the document's fields. The callbacks of a form do nothing.
func (a *annotations) openForm() (references.FPDF_FORMHANDLE, error) {
	if a.form != nil {
		return *a.form, nil
	}
	q := &requests.FPDFDOC_InitFormFillEnvironment{Document: a.doc}
	q.FormFillInfo = structs.FPDF_FORMFILLINFO{
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
	}
	got, err := a.in.FPDFDOC_InitFormFillEnvironment(q)
	if err != nil {
		return "", err
	}
	a.form = &got.FormHandle
	loaded := &requests.FORM_OnAfterLoadPage{Page: a.at, FormHandle: got.FormHandle}
	_, err = a.in.FORM_OnAfterLoadPage(loaded)
	return got.FormHandle, err
}

func (a *annotations) closeForm() {
	if a.form == nil {
		return
	}
	a.in.FORM_OnBeforeClosePage(&requests.FORM_OnBeforeClosePage{Page: a.at, FormHandle: *a.form})
	q := &requests.FPDFDOC_ExitFormFillEnvironment{FormHandle: *a.form}
	a.in.FPDFDOC_ExitFormFillEnvironment(q)
}

// field reads one widget. The buttons of a radio group, and a field that stands in several places,
// are one field.
func (a *annotations) field(annot references.FPDF_ANNOTATION, hidden bool) error {
	form, err := a.openForm()
	if err != nil {
		return err
	}
	w := widget{a.in, form, annot}
	q := &requests.FPDFAnnot_GetFormFieldType{FormHandle: form, Annotation: annot}
	kind, err := w.in.FPDFAnnot_GetFormFieldType(q)
	if err != nil || kind.FormFieldType == enums.FPDF_FORMFIELD_TYPE_PUSHBUTTON {
		return err
	}
	f := formField{name: cmp.Or(w.name(), "(no name)"), tip: unreadable.Clip(w.tip(), tipBytes)}
	if hidden {
		f.name += ", hidden"
	}
	if f.value, err = w.value(kind.FormFieldType); err != nil {
		return err
	}
	if kind.FormFieldType == enums.FPDF_FORMFIELD_TYPE_SIGNATURE && f.value != "" && !hidden {
		a.look(annot, "[form] "+f.name)
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

// widget is where a field stands on a page.
type widget struct {
	in    engine.Pdfium
	form  references.FPDF_FORMHANDLE
	annot references.FPDF_ANNOTATION
}

func (w widget) name() string {
	q := &requests.FPDFAnnot_GetFormFieldName{FormHandle: w.form, Annotation: w.annot}
	got, err := w.in.FPDFAnnot_GetFormFieldName(q)
	if err != nil {
		return ""
	}
	return oneLine(got.FormFieldName)
}

// tip is the words that a viewer shows when the mouse is over the field.
func (w widget) tip() string {
	q := &requests.FPDFAnnot_GetFormFieldAlternateName{FormHandle: w.form, Annotation: w.annot}
	got, err := w.in.FPDFAnnot_GetFormFieldAlternateName(q)
	if err != nil {
		return ""
	}
	return oneLine(got.FormFieldAlternateName)
}

func (w widget) value(kind enums.FPDF_FORMFIELD_TYPE) (string, error) {
	switch kind {
	case enums.FPDF_FORMFIELD_TYPE_CHECKBOX:
		return w.checked("checked")
	case enums.FPDF_FORMFIELD_TYPE_RADIOBUTTON:
		q := &requests.FPDFAnnot_GetFormFieldExportValue{FormHandle: w.form, Annotation: w.annot}
		got, err := w.in.FPDFAnnot_GetFormFieldExportValue(q)
		if err != nil {
			return "", err
		}
		return w.checked(cmp.Or(oneLine(got.Value), "checked"))
	case enums.FPDF_FORMFIELD_TYPE_COMBOBOX, enums.FPDF_FORMFIELD_TYPE_LISTBOX:
		chosen, all := w.options()
		value := strings.Join(chosen, "; ")
		if kind == enums.FPDF_FORMFIELD_TYPE_LISTBOX && len(all) > 0 { // the page shows them all
			return fmt.Sprintf("%s (of: %s)", cmp.Or(value, "nothing"), strings.Join(all, "; ")), nil
		}
		if value != "" {
			return value, nil
		}
	case enums.FPDF_FORMFIELD_TYPE_SIGNATURE:
		got, err := w.in.FPDFAnnot_HasKey(&requests.FPDFAnnot_HasKey{Annotation: w.annot, Key: "V"})
		if err != nil || !got.HasKey {
			return "", err
		}
		return "signed (the signature was not checked)", nil
	}
	q := &requests.FPDFAnnot_GetFormFieldValue{FormHandle: w.form, Annotation: w.annot}
	got, err := w.in.FPDFAnnot_GetFormFieldValue(q)
	if err != nil {
		return "", err
	}
	return cleanPageText(got.FormFieldValue), nil
}

// checked is the value of a button that is on; empty when it is off.
func (w widget) checked(value string) (string, error) {
	q := &requests.FPDFAnnot_IsChecked{FormHandle: w.form, Annotation: w.annot}
	got, err := w.in.FPDFAnnot_IsChecked(q)
	if err != nil || !got.IsChecked {
		return "", err
	}
	return value, nil
}

// options are the labels of a list: those that are selected, and all, as they are shown.
func (w widget) options() (chosen, all []string) {
	q := &requests.FPDFAnnot_GetOptionCount{FormHandle: w.form, Annotation: w.annot}
	count, err := w.in.FPDFAnnot_GetOptionCount(q)
	if err != nil {
		return nil, nil
	}
	for i := range min(count.OptionCount, fieldOptions) {
		q := &requests.FPDFAnnot_IsOptionSelected{FormHandle: w.form, Annotation: w.annot, Index: i}
		is, err := w.in.FPDFAnnot_IsOptionSelected(q)
		if err != nil {
			continue
		}
		l := &requests.FPDFAnnot_GetOptionLabel{FormHandle: w.form, Annotation: w.annot, Index: i}
		got, err := w.in.FPDFAnnot_GetOptionLabel(l)
		if err != nil {
			continue
		}
		label := oneLine(got.OptionLabel)
		if len(all) < shownOptions {
			all = append(all, label)
		}
		if is.IsOptionSelected {
			chosen = append(chosen, label)
		}
	}
	if more := min(count.OptionCount, fieldOptions) - shownOptions; more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return chosen, all
}

// String has a labelled line for each.
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
	if a.mute > 0 {
		lines = append(lines, fmt.Sprintf("[annotation] without text: %d", a.mute))
	}
	if a.unread > 0 {
		lines = append(lines, fmt.Sprintf(
			"[annotation] not read: %d of the form fields and annotations of this page", a.unread))
	}
	return strings.Join(lines, "\n")
}

// indented sets the further lines of a value off from the page's own.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

func oneLine(s string) string { return strings.Join(strings.Fields(cleanPageText(s)), " ") }
