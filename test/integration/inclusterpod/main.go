// SPDX-License-Identifier: Apache-2.0

// Command inclusterpod is the program in a pod of a test: it reads its own Pod object, as programs in clusters
// do, and prints the UID. Then it waits until it is stopped. POD_NAMESPACE and POD_NAME identify its pod.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := printPod(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ctx.Done()
}

func printPod(ctx context.Context) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.Timeout = 10 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	pod, err := client.CoreV1().Pods(os.Getenv("POD_NAMESPACE")).Get(ctx, os.Getenv("POD_NAME"), metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println("UID", pod.UID)
	return nil
}
