package grpcshaping_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/shaping/grpcshaping"
	"github.com/weirgo/weir/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server is the health service, which notes when calls arrive and refuses the
// first ones.
type server struct {
	grpc_health_v1.UnimplementedHealthServer
	mu       sync.Mutex
	refusals int
	delay    time.Duration // that a refusal states
	arrivals []time.Time
}

func (s *server) arrive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, time.Now())
	if len(s.arrivals) > s.refusals {
		return nil
	}
	refusal, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(s.delay)})
	if err != nil {
		return err
	}
	return refusal.Err()
}

func (s *server) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return new(grpc_health_v1.HealthCheckResponse), s.arrive()
}

func (s *server) Watch(_ *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	if err := s.arrive(); err != nil {
		return err
	}
	return stream.Send(new(grpc_health_v1.HealthCheckResponse))
}

// dial starts the server on a socket and returns a client whose calls wait in q.
func dial(t *testing.T, s *server, q *shaping.Queue) grpc_health_v1.HealthClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(served, s)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := served.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpcshaping.Unary(grpcshaping.One(q))), grpc.WithStreamInterceptor(grpcshaping.Stream(grpcshaping.One(q))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		served.Stop()
		serving.Wait()
	})
	return grpc_health_v1.NewHealthClient(conn)
}

func newQueue(t *testing.T, limits ...throttle.Limit) *shaping.Queue {
	t.Helper()
	limiter, err := throttle.Local{}.Limiter("grpc", limits...)
	if err != nil {
		t.Fatal(err)
	}
	q := shaping.NewQueue(limiter)
	t.Cleanup(func() { q.Close() })
	return q
}

func TestCallsAndStreamsWaitTheirTurn(t *testing.T) {
	s := new(server)
	client := dial(t, s, newQueue(t, throttle.LeakyBucket(50, time.Second)))
	began := time.Now()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if i%2 == 0 {
				if _, err := client.Check(t.Context(), new(grpc_health_v1.HealthCheckRequest)); err != nil {
					t.Error(err)
				}
				return
			}
			watch, err := client.Watch(t.Context(), new(grpc_health_v1.HealthCheckRequest))
			if err == nil {
				_, err = watch.Recv()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if took := time.Since(began); took < 380*time.Millisecond {
		t.Errorf("20 calls at 50/s took %v, want 380ms or more", took)
	}
	if len(s.arrivals) != 20 {
		t.Errorf("the server saw %d calls, want 20", len(s.arrivals))
	}
}

func TestRefusalPausesTheQueue(t *testing.T) {
	for name, call := range map[string]func(*testing.T, grpc_health_v1.HealthClient) error{
		"unary": func(t *testing.T, client grpc_health_v1.HealthClient) error {
			_, err := client.Check(t.Context(), new(grpc_health_v1.HealthCheckRequest))
			return err
		},
		"stream": func(t *testing.T, client grpc_health_v1.HealthClient) error {
			watch, err := client.Watch(t.Context(), new(grpc_health_v1.HealthCheckRequest))
			if err == nil {
				_, err = watch.Recv()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{refusals: 1, delay: 400 * time.Millisecond}
			client := dial(t, s, newQueue(t))
			if err := call(t, client); status.Code(err) != codes.ResourceExhausted {
				t.Fatalf("the first call: %v, want ResourceExhausted", err)
			}
			if err := call(t, client); err != nil {
				t.Fatal(err)
			}
			if apart := s.arrivals[1].Sub(s.arrivals[0]); apart < s.delay {
				t.Errorf("the second call arrived %v after the refusal, want %v or more", apart, s.delay)
			}
		})
	}
}

// A stream returns its end as often as it is asked, but it was refused once.
func TestARefusalPausesOnce(t *testing.T) {
	s := &server{refusals: 1, delay: 100 * time.Millisecond}
	q := newQueue(t)
	watch, err := dial(t, s, q).Watch(t.Context(), new(grpc_health_v1.HealthCheckRequest))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := watch.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("Recv = %v, want ResourceExhausted", err)
		}
		if err := q.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := watch.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("Recv = %v, want ResourceExhausted", err)
	}
	if f, err := q.Forecast(t.Context(), &shaping.Turn{N: 1}); err != nil || f.Reason != "" {
		t.Errorf("Forecast = %+v, %v, want no pause", f, err)
	}
}

func TestRejectedCallHasAStatus(t *testing.T) {
	q := newQueue(t, throttle.LeakyBucket(1, time.Minute))
	client := dial(t, new(server), q)
	check := func(ctx context.Context) error {
		_, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest))
		return err
	}
	if err := check(t.Context()); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	over, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx  context.Context
		want codes.Code
		is   error
	}{{short, codes.DeadlineExceeded, shaping.ErrDeadline}, {over, codes.Canceled, context.Canceled}} {
		if err := check(c.ctx); status.Code(err) != c.want || !errors.Is(err, c.is) {
			t.Errorf("Check = %v with code %v, want %v and %v", err, status.Code(err), c.is, c.want)
		}
	}
	q.Close()
	if err := check(t.Context()); status.Code(err) != codes.Unavailable || !errors.Is(err, shaping.ErrClosed) {
		t.Errorf("Check of a closed queue = %v with code %v, want Unavailable", err, status.Code(err))
	}
	lost := errors.New("store is lost")
	client = dial(t, new(server), shaping.NewQueue(throttle.LimiterFunc(func(throttle.Instant, throttle.Request) (throttle.Instant, error) { return 0, lost })))
	if err := check(t.Context()); status.Code(err) != codes.Unavailable || !errors.Is(err, lost) {
		t.Errorf("Check without a store = %v with code %v, want Unavailable", err, status.Code(err))
	}
}

// The zero Error can be printed, and has a status.
func TestZeroErrorIsAnError(t *testing.T) {
	err := error(new(grpcshaping.Error))
	if got := status.Convert(err); got.Code() != codes.Unavailable || got.Message() != "grpcshaping: call not sent" {
		t.Errorf("the zero Error is %v, want Unavailable", got)
	}
	for want, cause := range map[codes.Code]error{
		codes.ResourceExhausted: throttle.ErrExceedsBurst, codes.DeadlineExceeded: shaping.ErrDeadline, codes.Unavailable: shaping.ErrClosed,
	} {
		if err := (&grpcshaping.Error{Err: &shaping.Error{Err: cause}}); status.Code(err) != want || !errors.Is(err, cause) {
			t.Errorf("%v has code %v, want %v", err, status.Code(err), want)
		}
	}
	if err := (&grpcshaping.Error{Err: &shaping.Error{Err: shaping.ErrQueueFull}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v has code %v, want ResourceExhausted", err, status.Code(err))
	}
}
