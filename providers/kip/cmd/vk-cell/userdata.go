// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// firmware is the file with the user data from QEMU. It exists while the module qemu_fw_cfg is loaded.
const firmware = "/sys/firmware/qemu_fw_cfg/by_name/opt/vk/user-data/raw"

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
	service := newMetadata("http://" + metadataIP)
	for {
		data, found, err := service.get(ctx, "/latest/user-data")
		if found {
			return data, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(errors.New("read the user data: the metadata service gives none"), err)
		case <-time.After(time.Second):
		}
	}
}
