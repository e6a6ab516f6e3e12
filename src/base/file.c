/* SPDX-License-Identifier: Apache-2.0
 *
 * file.c - whole files. Called by the profile and cache readers, whose files are hostile input.
 * Invariant: a reader of a path that is being replaced sees the whole old file or the whole new one.
 */
#define _GNU_SOURCE 1
#include "base/file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rft_status io_error(rft_error *err, const char *what, const char *path, int code) {
    return rft__error_set(err, RFT_E_IO, code, "cannot %s %s: %s", what, path, strerrordesc_np(code));
}

/* ---- read ---- */

static bool read_all(int fd, char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(fd, data + done, size - done);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            errno = got == 0 ? ESTALE : errno; /* shorter than fstat said: it was cut while we read */
            return false;
        }
    }
    return true;
}

static rft_status check_readable(int fd, const char *path, size_t cap, size_t *size, rft_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return io_error(err, "read", path, errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return rft__error_set(err, RFT_E_IO, S_ISDIR(info.st_mode) ? EISDIR : EINVAL, "cannot read %s: it is not a regular file",
                              path);
    }
    if ((uint64_t)info.st_size > cap || (uint64_t)info.st_size >= SIZE_MAX) {
        return rft__error_set(err, RFT_E_IO, EFBIG, "cannot read %s: it has %lld bytes, more than the %zu allowed", path,
                              (long long)info.st_size, cap);
    }
    *size = (size_t)info.st_size;
    return RFT_OK;
}

static rft_status read_open(int fd, const rft__allocator *a, const char *path, size_t cap, char **data, size_t *size,
                            rft_error *err) {
    RFT_TRY(check_readable(fd, path, cap, size, err));
    char *text = rft__alloc(a, *size + 1, sizeof(void *));
    if (text == NULL) {
        RFT_FAIL(err, RFT_E_NOMEM, "no memory for the %zu bytes of %s", *size, path);
    }
    if (!read_all(fd, text, *size)) {
        const int code = errno;
        rft__release(a, text, *size + 1);
        return io_error(err, "read", path, code);
    }
    *data = text;
    return RFT_OK;
}

rft_status rft__file_read(const rft__allocator *a, const char *path, size_t cap, char **data, size_t *size, rft_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a FIFO without a writer must not hang us */
    if (fd < 0) {
        return io_error(err, "open", path, errno);
    }
    const rft_status status = read_open(fd, a, path, cap, data, size, err);
    close(fd);
    return status;
}

/* ---- replace ---- */

/* Makes each folder that path goes through. One that is there, or cannot be made, shows when the file is created. */
static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

/* A new file beside path, its name in temporary; -1 and errno on failure. */
static int create_temporary(const char *path, char temporary[PATH_MAX]) {
    static atomic_uint serial;
    int fd;
    do {
        const unsigned id = atomic_fetch_add(&serial, 1);
        const int length = snprintf(temporary, PATH_MAX, "%s.%ld.%u.tmp", path, (long)getpid(), id);
        if (length < 0 || length >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        make_folders(temporary);
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST); /* left by a dead process with our id */
    return fd;
}

static bool write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        const ssize_t put = write(fd, data, size);
        if (put >= 0) {
            data += put;
            size -= (size_t)put;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* 0 or errno. fd is closed in any case. */
static int write_and_sync(int fd, const void *data, size_t size) {
    const int code = write_all(fd, data, size) && fsync(fd) == 0 ? 0 : errno;
    return close(fd) != 0 && code == 0 ? errno : code;
}

rft_status rft__file_replace(const char *path, const void *data, size_t size, rft_error *err) {
    char temporary[PATH_MAX];
    const int fd = create_temporary(path, temporary);
    if (fd < 0) {
        return io_error(err, "create", path, errno);
    }
    int code = write_and_sync(fd, data, size);
    if (code == 0 && rename(temporary, path) != 0) {
        code = errno;
    }
    if (code != 0) {
        unlink(temporary);
        return io_error(err, "write", path, code);
    }
    return RFT_OK;
}
