package grpcshaping

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/throttle"
)

// MaxPause is the longest pause that a server's RetryInfo causes: one wrong answer cannot stop
// clients for longer.
const MaxPause = time.Hour

// One returns a function that names one queue for every method.
func One(q *shaping.Queue) func(method string) *shaping.Queue {
	return func(string) *shaping.Queue { return q }
}

// Unary returns an interceptor that lets each call wait in the queue of its full
// method name, such as "/mail.v1.Mail/Send". If queue returns nil, the call does
// not wait. The queues are safe for concurrent use, and queue must be, too. A call
// that is rejected has an [*Error].
func Unary(queue func(method string) *shaping.Queue) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		q := queue(method)
		if q == nil {
			return invoke(ctx, method, req, reply, conn, options...)
		}
		if err := q.Wait(ctx); err != nil {
			return rejected(err)
		}
		err := invoke(ctx, method, req, reply, conn, options...)
		believe(q, err)
		return err
	}
}

// Stream is [Unary] for streams: each waits once, before it is opened. A refusal is read when the
// stream is opened or at the message that ends it.
func Stream(queue func(method string) *shaping.Queue) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		q := queue(method)
		if q == nil {
			return open(ctx, desc, conn, method, options...)
		}
		if err := q.Wait(ctx); err != nil {
			return nil, rejected(err)
		}
		s, err := open(ctx, desc, conn, method, options...)
		if believe(q, err); err != nil {
			return nil, err
		}
		return &stream{ClientStream: s, queue: q}, nil
	}
}

// A stream pauses its queue if it is refused.
type stream struct {
	grpc.ClientStream
	queue *shaping.Queue
	ended bool // by an error, which later calls of RecvMsg return again
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil && !s.ended {
		s.ended = true
		believe(s.queue, err)
	}
	return err
}

// believe pauses the queue if the server refused a call for a time.
func believe(q *shaping.Queue, err error) {
	if d := refusedFor(err); d > 0 {
		q.Pause(min(d, MaxPause))
	}
}

// refusedFor returns for how long the server refuses calls; zero if it does not, or gives no time.
func refusedFor(err error) time.Duration {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.ResourceExhausted && s.Code() != codes.Unavailable {
		return 0
	}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// An Error says why a call was not sent. It unwraps to the queue's error, such as a
// [*shaping.Error], and has the status code that gRPC would give it:
// DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED for a full line or a cost that is never
// granted, CANCELED, and UNAVAILABLE for a closed queue or a store that refuses.
type Error struct {
	Err error // of the queue; nil: it is not known
}

func rejected(err error) error { return &Error{err} }

// Error returns the queue's error.
func (e *Error) Error() string {
	if e.Err == nil {
		return "grpcshaping: call not sent"
	}
	return "grpcshaping: " + e.Err.Error()
}

// Unwrap returns the queue's error.
func (e *Error) Unwrap() error { return e.Err }

// GRPCStatus returns the error as gRPC has it.
func (e *Error) GRPCStatus() *status.Status {
	code := codes.Unavailable
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(e.Err, context.Canceled):
		code = codes.Canceled
	case errors.Is(e.Err, shaping.ErrQueueFull), errors.Is(e.Err, throttle.ErrExceedsBurst):
		code = codes.ResourceExhausted
	}
	return status.New(code, e.Error())
}
