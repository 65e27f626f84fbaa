module github.com/weirgo/weir/shaping/xrate

go 1.26.0

require github.com/weirgo/weir v0.0.0

require golang.org/x/time v0.16.0

replace github.com/weirgo/weir => ../..
