package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"moltisfs/config"
	"moltisfs/hook"
	"moltisfs/telemetry"
	"moltisfs/tools"
)

// spans is a provider of spans that keeps what is said of them.
type spans struct {
	noop.TracerProvider
	said []string
}

func (s *spans) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{spans: s} }

type tracer struct {
	noop.Tracer
	spans *spans
}

func (t tracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, span{spans: t.spans}
}

type span struct {
	noop.Span
	spans *spans
}

func (s span) SetAttributes(kv ...attribute.KeyValue) {
	for _, a := range kv {
		s.spans.said = append(s.spans.said, string(a.Key)+"="+a.Value.String())
	}
}

// Each call counts once, under its tool, and no label holds what a caller made up.
func TestMetricsAndTraces(t *testing.T) {
	registry, traces := prometheus.NewRegistry(), &spans{}
	root, _ := filepath.EvalSymlinks(t.TempDir())
	file := filepath.Join(root, "secret-name")
	if err := os.WriteFile(file, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // two suites on one registry
		observer, err := telemetry.New(telemetry.Options{Metrics: registry, Traces: traces})
		if err != nil {
			t.Fatal(err)
		}
		s, err := tools.Open(config.Default(), tools.Options{DataDir: filepath.Join(t.TempDir(), "data"), Hooks: hook.Set{Observer: observer}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ tool, path string }{{"Read", file}, {"Read", file + "x"}, {"Invented", ""}} {
			raw, _ := json.Marshal(map[string]string{"file_path": c.path})
			_, _ = s.Call(t.Context(), tools.Call{Session: "secret-session", Tool: c.tool, Args: raw})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			line := f.GetName()
			for _, l := range m.Label {
				line += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			got = append(got, fmt.Sprintf("%s %g", line, value))
		}
	}
	want := []string{
		"moltis_tool_execution_duration_seconds tool=Read 4",
		"moltis_tool_execution_duration_seconds tool=unknown 2",
		"moltis_tool_execution_errors_total kind=not_found tool=Read 2",
		"moltis_tool_execution_errors_total kind=unknown_tool tool=unknown 2",
		"moltis_tool_executions_in_flight 0",
		"moltis_tool_executions_total success=false tool=Read 2",
		"moltis_tool_executions_total success=false tool=unknown 2",
		"moltis_tool_executions_total success=true tool=Read 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	if said := strings.Join(traces.said, " "); !strings.HasPrefix(said, "tool=Read file_path="+file+" bytes=13 outcome=ok") {
		t.Errorf("the first span says %s", said)
	}
}
