package recipes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/shaping/grpcshaping"
)

// An outcome is how a server without HTTP treats every call.
type outcome int

const (
	served  outcome = iota
	refused         // as a 429
	failed          // as a 500
)

// A queueRow is one client that waits in a queue instead of a Transport.
type queueRow struct {
	page, what string
	retrying   bool // the client has retries of its own

	// open returns a function for one call, and one that counts the server's requests.
	open func(t *testing.T, queue *shaping.Queue, w way, o outcome, tracer *sdktrace.TracerProvider) (call func(context.Context) error, came func() int)
}

var queueRows = []queueRow{
	{"smtp", "a mail", false, openSMTP},
	{"grpc", "Health.Check", true, openGRPC},
}

// The second table of the index is the results of clients without HTTP here.
func TestQueueTableIsAsMeasured(t *testing.T) {
	table := "| client | call | lines | refused: retries off | refused: on | failed: off | failed: on | error of the last refusal | `*shaping.Error` is found | the context's deadline holds | spans |\n" + strings.Repeat("| --- ", 11) + "|\n"
	for _, r := range queueRows {
		link := fmt.Sprintf("[%s](%s.md)", r.page, r.page)
		own := func(o outcome) string {
			if !r.retrying {
				return none
			}
			n, _ := r.sent(t, retrying, o)
			return fmt.Sprint(n)
		}
		off, last := r.sent(t, recommended, refused)
		broken, _ := r.sent(t, recommended, failed)
		found, kept := r.rejected(t)
		table += fmt.Sprintf("| %s | %s | %d | %d | %s | %d | %s | %s | %s | %s | %s |\n", link, r.what, (&row{page: r.page}).lines(t),
			off, own(refused), broken, own(failed), typeOf(last), yes(found), yes(kept), r.spans(t))
	}
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	now := between(string(text), "queues", table)
	if os.Getenv("WEIR_SDK") == "write" {
		if err := os.WriteFile(index, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("measured:\n%s\nif this is meant, write it: WEIR_SDK=write go test ./recipes", table)
	}
}

// sent makes one call. It returns how many requests the server saw, and the user's error.
func (r *queueRow) sent(t *testing.T, w way, o outcome) (n int, seen error) {
	inBubble(t, func(t *testing.T) {
		call, came := r.open(t, newQueue(t), w, o, sdktrace.NewTracerProvider())
		seen = call(t.Context())
		n = came()
	})
	return n, seen
}

// rejected calls while the queue is paused for longer than the call may take. It reports whether
// the user gets the queue's error, and whether the call ended at once.
func (r *queueRow) rejected(t *testing.T) (found, kept bool) {
	inBubble(t, func(t *testing.T) {
		queue := newQueue(t)
		call, came := r.open(t, queue, recommended, served, sdktrace.NewTracerProvider())
		queue.Pause(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := call(ctx)
		found = errors.As(err, new(*shaping.Error))
		kept = errors.Is(err, shaping.ErrDeadline) && errors.Is(err, context.DeadlineExceeded) && time.Since(began) == 0
		if err == nil || came() != 0 {
			t.Errorf("call = %v after %d requests, want an error after none", err, came())
		}
	})
	return found, kept
}

// openSMTP sends mails to a post office.
func openSMTP(_ *testing.T, queue *shaping.Queue, _ way, o outcome, _ *sdktrace.TracerProvider) (call func(context.Context) error, came func() int) {
	office := &postOffice{reply: func(int) string {
		return []string{"250 OK", "450 4.7.1 too many mails", "451 4.3.0 local error"}[o]
	}}
	m := &mailer{dial: office.dial, queue: queue}
	call = func(ctx context.Context) error {
		return m.send(ctx, "us@example.com", []string{"you@example.com"}, []byte("text"))
	}
	return call, func() int { return len(office.came) }
}

// A health server does the same for each call.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	outcome outcome
	came    atomic.Int32
}

func (h *health) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.came.Add(1)
	switch h.outcome {
	case refused:
		s, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	case failed:
		return nil, status.Error(codes.Unavailable, "no")
	}
	return new(grpc_health_v1.HealthCheckResponse), nil
}

// retryPolicy is a service's own: up to three retries of each call.
const retryPolicy = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.1s","maxBackoff":"1s",
	"backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE","RESOURCE_EXHAUSTED"]}}]}`

// openGRPC calls a health server over pipes.
func openGRPC(t *testing.T, queue *shaping.Queue, w way, o outcome, tracer *sdktrace.TracerProvider) (call func(context.Context) error, came func() int) {
	h, pipes := &health{outcome: o}, newPipes()
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, h)
	go server.Serve(pipes)
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(pipes.dial), grpc.WithDefaultServiceConfig(retryPolicy),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(tracer))),
	}
	dial := dialWaiting
	if w == retrying {
		dial = func(target string, queue *shaping.Queue, options ...grpc.DialOption) (*grpc.ClientConn, error) {
			return grpc.NewClient(target, append(options, grpc.WithUnaryInterceptor(grpcshaping.Unary(grpcshaping.One(queue))))...)
		}
	}
	conn, err := dial("passthrough:///health", queue, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	client := grpc_health_v1.NewHealthClient(conn)
	call = func(ctx context.Context) error {
		_, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
		return err
	}
	return call, func() int { return int(h.came.Load()) }
}

// Pipes are a listener in the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   atomic.Bool
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	if !p.once.Swap(true) {
		close(p.closed)
	}
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return new(net.UnixAddr) }

// spans returns the spans of a call that waits for ten seconds.
func (r *queueRow) spans(t *testing.T) (text string) {
	inBubble(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		queue := newQueue(t)
		call, _ := r.open(t, queue, recommended, served, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
		queue.Pause(10 * time.Second)
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
		text = none
		for _, s := range spans.Ended() {
			text = "`RPC`, with the wait"
			if s.EndTime().Sub(s.StartTime()) < 10*time.Second {
				text = "`RPC`, without the wait"
			}
		}
	})
	return text
}

func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
