// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// PauseFile is the path of the pause program in a sandbox.
const PauseFile = "/pause"

// The sizes and file types of an EROFS file system.
const (
	erofsBlock, erofsSlot, erofsEntry = 4096, 32, 12
	erofsFile, erofsDirectory         = 1, 2
)

// PauseImage returns an EROFS image with the pause program and the directories for mounts. gVisor reads it by
// itself. A sandbox with a root directory would need another process that opens files.
func PauseImage(architecture string) ([]byte, error) {
	program, err := Pause(architecture)
	if err != nil {
		return nil, err
	}
	// The first block describes the file system, the second has the inodes with the contents of directories, the
	// third has the program.
	image := make([]byte, 3*erofsBlock)
	copy(image[2*erofsBlock:], program)
	const root = 1
	next := uint32(root + 1 + (7*erofsEntry+len("...devpauseprocsystmp")+erofsSlot-1)/erofsSlot)
	names := []erofsName{{".", root, erofsDirectory}, {"..", root, erofsDirectory}}
	for _, name := range []string{"dev", "pause", "proc", "sys", "tmp"} { // in sorted order
		if name == PauseFile[1:] {
			names = append(names, erofsName{name, next, erofsFile})
			erofsInode(image, next, 0, 0o100555, 1, 2, len(program), nil)
			next++
			continue
		}
		names = append(names, erofsName{name, next, erofsDirectory})
		erofsInode(image, next, 2, 0o040755, 2, 0, 0, erofsNames([]erofsName{{".", next, erofsDirectory}, {"..", root, erofsDirectory}}))
		next += 2
	}
	erofsInode(image, root, 2, 0o040755, 6, 0, 0, erofsNames(names))
	head := image[1024:]
	binary.LittleEndian.PutUint32(head, 0xe0f5e1e2)
	head[12] = 12                                  // the size of a block is two to the power of this value
	binary.LittleEndian.PutUint16(head[14:], root) // the inode number of the root
	binary.LittleEndian.PutUint64(head[16:], 6)    // inodes
	binary.LittleEndian.PutUint32(head[36:], 3)    // blocks
	binary.LittleEndian.PutUint32(head[40:], 1)    // the block of the inodes
	return image, nil
}

// erofsName is a directory entry.
type erofsName struct {
	name  string
	inode uint32
	kind  uint8
}

// erofsNames returns the content of a directory.
func erofsNames(all []erofsName) []byte {
	var entries, names bytes.Buffer
	for _, n := range all {
		_ = binary.Write(&entries, binary.LittleEndian, struct {
			Inode     uint64
			At        uint16
			Kind, Pad uint8
		}{uint64(n.inode), uint16(len(all)*erofsEntry + names.Len()), n.kind, 0}) //nolint:gosec // a few names fit, and a buffer takes everything
		names.WriteString(n.name)
	}
	return slices.Concat(entries.Bytes(), names.Bytes())
}

// erofsInode writes an inode. data follows the inode; a larger file is in the given block with the given size.
func erofsInode(image []byte, number uint32, layout, mode, links uint16, block uint32, size int, data []byte) {
	at := image[erofsBlock+int(number)*erofsSlot:]
	binary.LittleEndian.PutUint16(at, layout<<1)
	binary.LittleEndian.PutUint16(at[4:], mode)
	binary.LittleEndian.PutUint16(at[6:], links)
	binary.LittleEndian.PutUint32(at[8:], uint32(size+len(data))) //nolint:gosec // less than a block fits
	binary.LittleEndian.PutUint32(at[16:], block)
	binary.LittleEndian.PutUint32(at[20:], number)
	copy(at[erofsSlot:], data)
}
