// Hands the lists of `cold prefetch export` to the code that reads them in production, and looks at what that makes of
// them: images ROOTFS.tar ESTARGZ SOCI
//
// estargz: an eStargz image is built of the tar with the list; the listed files have to lie in front of the prefetch
// landmark, in the order of the list, and nothing else. SOCI: an index is built of an image of one layer with the list;
// the spans to prefetch have to hold every byte of every listed file.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/awslabs/soci-snapshotter/soci"
	"github.com/awslabs/soci-snapshotter/soci/store"
	"github.com/awslabs/soci-snapshotter/ztoc"
	"github.com/awslabs/soci-snapshotter/ztoc/compression"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/platforms"
	"github.com/containerd/stargz-snapshotter/estargz"
	"github.com/containerd/stargz-snapshotter/recorder"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: images ROOTFS.tar ESTARGZ SOCI")
		os.Exit(2)
	}
	rootfs, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = errors.Join(checkEstargz(rootfs, os.Args[2]), checkSoci(rootfs, os.Args[3]))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// clean is the name of a file as archives have it.
func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// recorded reads a record as the image converters do: an entry a line, the first of a name counts.
func recorded(name string) ([]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var paths []string
	seen := map[string]bool{}
	decoder := json.NewDecoder(file)
	for decoder.More() {
		var entry recorder.Entry
		if err := decoder.Decode(&entry); err != nil {
			return nil, err
		}
		if !seen[entry.Path] {
			seen[entry.Path] = true
			paths = append(paths, entry.Path)
		}
	}
	return paths, nil
}

func checkEstargz(rootfs []byte, list string) error {
	paths, err := recorded(list)
	if err != nil {
		return fmt.Errorf("estargz: %w", err)
	}
	if len(paths) == 0 {
		return errors.New("estargz: the list is empty")
	}
	var missed []string
	blob, err := estargz.Build(
		io.NewSectionReader(bytes.NewReader(rootfs), 0, int64(len(rootfs))),
		estargz.WithPrioritizedFiles(paths),
		estargz.WithAllowPrioritizeNotFound(&missed),
		estargz.WithCompressionLevel(gzip.BestSpeed),
	)
	if err != nil {
		return fmt.Errorf("estargz: %w", err)
	}
	defer blob.Close()
	if len(missed) > 0 {
		return fmt.Errorf("estargz: not in the image: %v", missed)
	}
	unzipped, err := gzip.NewReader(blob)
	if err != nil {
		return fmt.Errorf("estargz: %w", err)
	}
	var front []string
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err != nil {
			return fmt.Errorf("estargz: no landmark behind %d files: %w", len(front), err)
		}
		if header.Name == estargz.PrefetchLandmark {
			break
		}
		if header.Typeflag == tar.TypeReg {
			front = append(front, clean(header.Name))
		}
	}
	for i, name := range paths {
		if i >= len(front) || clean(name) != front[i] {
			return fmt.Errorf("estargz: %s is not in place %d of what is prefetched", name, i)
		}
	}
	if len(front) != len(paths) {
		return fmt.Errorf("estargz: %d files are prefetched, %d are listed", len(front), len(paths))
	}
	fmt.Printf("estargz: %d of %d listed files lie in front of the landmark, in order\n", len(front), len(paths))
	return nil
}

// image puts an image of one layer into a content store.
func image(ctx context.Context, rootfs []byte, into content.Store) (images.Image, error) {
	var layer bytes.Buffer
	zip := gzip.NewWriter(&layer)
	if _, err := zip.Write(rootfs); err != nil {
		return images.Image{}, err
	}
	if err := zip.Close(); err != nil {
		return images.Image{}, err
	}
	put := func(mediaType string, data []byte) (ocispec.Descriptor, error) {
		of := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
		return of, content.WriteBlob(ctx, into, of.Digest.String(), bytes.NewReader(data), of)
	}
	layerDesc, err := put(ocispec.MediaTypeImageLayerGzip, layer.Bytes())
	if err != nil {
		return images.Image{}, err
	}
	config, err := json.Marshal(ocispec.Image{
		Platform: platforms.DefaultSpec(),
		RootFS:   ocispec.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(rootfs)}},
	})
	if err != nil {
		return images.Image{}, err
	}
	configDesc, err := put(ocispec.MediaTypeImageConfig, config)
	if err != nil {
		return images.Image{}, err
	}
	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    configDesc,
		Layers:    []ocispec.Descriptor{layerDesc},
	})
	if err != nil {
		return images.Image{}, err
	}
	target, err := put(ocispec.MediaTypeImageManifest, manifest)
	return images.Image{Name: "check", Target: target}, err
}

func checkSoci(rootfs []byte, list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	var paths []string
	if err := json.Unmarshal(text, &paths); err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	work, err := os.MkdirTemp("", "cold-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	ctx := namespaces.WithNamespace(context.Background(), "check")
	contents, err := local.NewStore(filepath.Join(work, "content"))
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	of, err := image(ctx, rootfs, contents)
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	artifacts, err := soci.NewDB(filepath.Join(work, "artifacts.db"))
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	blobs, err := store.NewSociStore(filepath.Join(work, "soci"))
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	builder, err := soci.NewIndexBuilder(contents, blobs,
		soci.WithArtifactsDb(artifacts), soci.WithMinLayerSize(0), soci.WithSpanSize(1<<20), soci.WithPrefetchPaths(paths))
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	index, err := builder.Build(ctx, of)
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	return prefetched(ctx, index, blobs, paths)
}

// prefetched looks whether the spans to prefetch hold the listed files.
func prefetched(ctx context.Context, index *soci.IndexWithMetadata, blobs *store.SociStore, paths []string) error {
	var toc *ztoc.Ztoc
	var spans *soci.PrefetchArtifact
	for _, desc := range index.Index.Blobs {
		blob, err := blobs.Fetch(ctx, desc)
		if err != nil {
			return fmt.Errorf("soci: %w", err)
		}
		switch desc.MediaType {
		case soci.SociLayerMediaType:
			toc, err = ztoc.Unmarshal(blob)
		case soci.SociPrefetchMediaType:
			spans, err = soci.UnmarshalPrefetchArtifact(blob)
		}
		blob.Close()
		if err != nil {
			return fmt.Errorf("soci: %s: %w", desc.MediaType, err)
		}
	}
	if toc == nil || spans == nil {
		return errors.New("soci: the index has nothing to prefetch")
	}
	info, err := toc.Zinfo()
	if err != nil {
		return fmt.Errorf("soci: %w", err)
	}
	defer info.Close()
	held := func(span compression.SpanID) bool {
		for _, s := range spans.PrefetchSpans {
			if s.StartSpan <= span && span <= s.EndSpan {
				return true
			}
		}
		return false
	}
	files := map[string]ztoc.FileMetadata{}
	for _, file := range toc.FileMetadata {
		files[clean(file.Name)] = file
	}
	for _, name := range paths {
		file, found := files[clean(name)]
		if !found {
			return fmt.Errorf("soci: %s is not in the image", name)
		}
		first := info.UncompressedOffsetToSpanID(file.UncompressedOffset)
		last := info.UncompressedOffsetToSpanID(file.UncompressedOffset + file.UncompressedSize)
		for span := first; span <= last; span++ {
			if !held(span) {
				return fmt.Errorf("soci: span %d of %s is not prefetched", span, name)
			}
		}
	}
	var n int64
	for _, s := range spans.PrefetchSpans {
		n += int64(s.EndSpan-s.StartSpan) + 1
	}
	fmt.Printf("soci: all of %d listed files lie in the %d spans to prefetch, of %d\n", len(paths), n, int64(toc.MaxSpanID)+1)
	return nil
}
