// Package telemetry makes metrics and traces of calls, for a host that has Prometheus or
// OpenTelemetry.
//
//	o := telemetry.Options{Metrics: prometheus.DefaultRegisterer, Traces: provider}
//	observe, err := telemetry.New(o)
//	suite, err := tools.Open(cfg, tools.Options{Hooks: hook.Set{Observer: observe}})
//
// The metrics, with the names of Moltis:
//
//	moltis_tool_executions_total{tool, success}      calls that have ended
//	moltis_tool_execution_errors_total{tool, kind}   those that failed, by kind of refusal
//	moltis_tool_execution_duration_seconds{tool}     how long they took, approval included
//	moltis_tool_executions_in_flight                 calls under way
//
// No label holds a path, a session or a principal, and a tool that does not exist is "unknown":
// what a model makes up adds no series.
//
// A span is named for its tool and has the attributes tool, dialect, call_id, session_key,
// file_path, bytes and outcome. It is an error where the host is broken.
//
// An observer is safe for concurrent use. Several suites may share a registerer.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"moltisfs/hook"
)

// Options is where metrics and traces go; nil is nowhere.
type Options struct {
	Metrics prometheus.Registerer
	Traces  trace.TracerProvider
}

// New makes an observer and registers its metrics.
func New(o Options) (hook.Observer, error) {
	ob := &observer{
		executions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moltis_tool_executions_total", Help: "Tool calls that have ended.",
		}, []string{"tool", "success"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moltis_tool_execution_errors_total", Help: "Tool calls that did not succeed.",
		}, []string{"tool", "kind"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "moltis_tool_execution_duration_seconds", Help: "How long tool calls took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10), // to 131 s
		}, []string{"tool"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "moltis_tool_executions_in_flight", Help: "Tool calls under way.",
		}),
	}
	if o.Metrics != nil {
		err := errors.Join(register(o.Metrics, &ob.executions), register(o.Metrics, &ob.failures),
			register(o.Metrics, &ob.duration), register(o.Metrics, &ob.inFlight))
		if err != nil {
			return nil, fmt.Errorf("registering the metrics: %w", err)
		}
	}
	if o.Traces != nil {
		ob.tracer = o.Traces.Tracer("moltis-fs")
	}
	return ob, nil
}

// register takes the collector of another suite where there is one.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	if twice, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if there, ok := twice.ExistingCollector.(C); ok {
			*c = there
			return nil
		}
	}
	return err
}

type observer struct {
	executions, failures *prometheus.CounterVec
	duration             *prometheus.HistogramVec
	inFlight             prometheus.Gauge
	tracer               trace.Tracer // nil: no traces
}

func (o *observer) Begin(ctx context.Context, i hook.Info) (context.Context, func(hook.End)) {
	o.inFlight.Inc()
	var span trace.Span
	if o.tracer != nil {
		ctx, span = o.tracer.Start(ctx, "tool call", trace.WithAttributes(
			attribute.String("dialect", i.Dialect), attribute.String("call_id", i.CallID),
			attribute.String("session_key", i.Session)))
	}
	return ctx, func(e hook.End) {
		o.inFlight.Dec()
		tool, ok := "unknown", e.Outcome == "ok"
		if e.Known {
			tool = i.Tool
		}
		o.executions.WithLabelValues(tool, strconv.FormatBool(ok)).Inc()
		if !ok {
			o.failures.WithLabelValues(tool, e.Outcome).Inc()
		}
		o.duration.WithLabelValues(tool).Observe(e.Duration.Seconds())
		if span == nil {
			return
		}
		span.SetName(tool)
		span.SetAttributes(attribute.String("tool", tool), attribute.String("file_path", e.Path),
			attribute.Int64("bytes", e.Bytes), attribute.String("outcome", e.Outcome))
		if e.Broken {
			span.SetStatus(codes.Error, "the host is broken")
		}
		span.End()
	}
}
