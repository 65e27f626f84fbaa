package recipes

import (
	"google.golang.org/grpc"

	"github.com/weirgo/weir/shaping"
	"github.com/weirgo/weir/shaping/grpcshaping"
)

// dialWaiting returns a connection whose calls wait in a queue.
func dialWaiting(target string, queue *shaping.Queue, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	one := grpcshaping.One(queue) // +
	return grpc.NewClient(target, append(options,
		grpc.WithChainUnaryInterceptor(grpcshaping.Unary(one)),   // +
		grpc.WithChainStreamInterceptor(grpcshaping.Stream(one)), // +
		grpc.WithDisableRetry(),                                  // +
	)...)
}
