// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// firmware is the file with the user data from QEMU. It exists while the module qemu_fw_cfg is loaded.
const firmware = "/sys/firmware/qemu_fw_cfg/by_name/opt/vk/user-data/raw"

// metadata is the URL of a cloud's metadata service for machines.
const metadata = "http://169.254.169.254"

// userData returns the user data of the machine from QEMU, or from the metadata service of a cloud.
func userData() ([]byte, error) {
	data, err := os.ReadFile(firmware)
	if err == nil {
		// No pod can load the module again: switchRoot has removed its file from memory.
		if err := unix.DeleteModule("qemu_fw_cfg", unix.O_NONBLOCK); err != nil {
			return nil, fmt.Errorf("hide the user data: %w", err)
		}
		return data, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		data, err := ask(ctx)
		if err == nil {
			return data, ip("route", "replace", "prohibit", "169.254.169.254/32") // pods must not reach the metadata service
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read the user data: %w", err)
		case <-time.After(time.Second):
		}
	}
}

// ask reads the user data from the metadata service. It uses a token if the service issues one.
func ask(ctx context.Context) ([]byte, error) {
	token, err := get(ctx, http.MethodPut, "/latest/api/token", http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}})
	header := http.Header{}
	if err == nil {
		header.Set("X-Aws-Ec2-Metadata-Token", string(token))
	}
	return get(ctx, http.MethodGet, "/latest/user-data", header)
}

func get(ctx context.Context, method, path string, header http.Header) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, metadata+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header = header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: the metadata service answers %s", path, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 64<<10))
}
