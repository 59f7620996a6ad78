// SPDX-License-Identifier: Apache-2.0

// Command serve runs the service of package toy at an address of this machine, until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet/internal/scaffold/vk-skeleton/toy"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8480", "`address` to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: toy.New(ctx), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Printf("the toy is at http://%s\n", *listen)
	if err := server.ListenAndServe(); ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
