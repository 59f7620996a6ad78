module github.com/virtual-kubelet/virtual-kubelet/providers/process/demo/shell

go 1.26.3

require (
	golang.org/x/term v0.45.0
	mvdan.cc/sh/v3 v3.14.1
)

require golang.org/x/sys v0.47.0 // indirect
