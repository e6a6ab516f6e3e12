/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping.c - maps a file. See mapping.h. Messages cut long paths at their start, where they say least.
 */
#define _GNU_SOURCE 1
#include "mapping.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *tail(const char *path) {
    const size_t length = strlen(path), most = 120;
    return length > most ? path + length - most : path;
}

static rft_status io_error(const char *what, const char *path, rft_error *err) {
    const int code = errno;
    char text[64];
    return rft__error_set(err, RFT_E_IO, code, "cannot %s '%s': %s", what, tail(path), strerror_r(code, text, sizeof text));
}

static rft_status map_open_file(int fd, const char *path, rft__mapping *out, rft_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return io_error("examine", path, err);
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0) {
        RFT_FAIL(err, RFT_E_IO, "'%s' is %s: a model file is expected", tail(path),
                 S_ISDIR(st.st_mode)   ? "a folder"
                 : S_ISREG(st.st_mode) ? "empty"
                                       : "not a regular file");
    }
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED && errno == ENOMEM) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to map '%s'", tail(path));
    }
    if (bytes == MAP_FAILED) {
        return io_error("map", path, err);
    }
    *out = (rft__mapping){bytes, (size_t)st.st_size};
    return RFT_OK;
}

rft_status rft__path_split(const char *path, char *folder, const char **name, rft_error *err) {
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 1;
    if (length >= PATH_MAX) {
        return rft__error_set(err, RFT_E_IO, ENAMETOOLONG, "a path of %zu bytes is too long", strlen(path));
    }
    memcpy(folder, slash ? path : ".", length);
    folder[length] = 0;
    if (length == 0) {
        memcpy(folder, "/", 2);
    }
    *name = slash ? slash + 1 : path;
    return RFT_OK;
}

rft_status rft__path_join(const char *folder, const char *name, char *out, rft_error *err) {
    const int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX) {
        return rft__error_set(err, RFT_E_IO, ENAMETOOLONG, "the path of '%.99s' is longer than %d bytes", name, PATH_MAX - 1);
    }
    return RFT_OK;
}

rft_status rft__map_file(const char *path, rft__mapping *out, rft_error *err) {
    *out = (rft__mapping){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (fd < 0) {
        return io_error("open", path, err);
    }
    const rft_status status = map_open_file(fd, path, out, err);
    close(fd);
    return status;
}

void rft__unmap_file(rft__mapping *mapping) {
    if (mapping->bytes) {
        munmap(mapping->bytes, mapping->size);
    }
    *mapping = (rft__mapping){0};
}
