// Package grpcshaping makes the calls of a gRPC client wait in a [shaping.Queue].
//
//	queue := shaping.NewQueue(limiter)
//	conn, err := grpc.NewClient(target,
//		grpc.WithUnaryInterceptor(grpcshaping.Unary(grpcshaping.One(queue))),
//		grpc.WithStreamInterceptor(grpcshaping.Stream(grpcshaping.One(queue))))
//
// A call waits for one permit of every limit before it is sent, and a stream before it is opened.
// Messages of a stream are not counted. Priorities and tenants of the call's context apply
// ([shaping.WithPriority], [shaping.WithTenant]). A call that is refused with RESOURCE_EXHAUSTED or
// UNAVAILABLE and a google.rpc.RetryInfo pauses the queue for the delay that it states. Nothing is
// sent again. gRPC's own retry policy comes after interceptors, so its attempts share one permit.
// Turn it off (grpc.WithDisableRetry) if the server counts them.
package grpcshaping
