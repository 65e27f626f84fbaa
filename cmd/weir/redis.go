package main

import "context"

func redisCommand(_ context.Context, _ []string, _ console) error { return usagef("not yet") }
