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

/* A name beside path that no other call makes. */
static bool name_temporary(const char *path, char temporary[PATH_MAX]) {
    static atomic_uint serial;
    const unsigned id = atomic_fetch_add(&serial, 1);
    const int length = snprintf(temporary, PATH_MAX, "%s.%ld.%u.tmp", path, (long)getpid(), id);
    if (length < 0 || length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

/* A new file beside path, its name in temporary; -1 and errno on failure. */
static int create_temporary(const char *path, char temporary[PATH_MAX]) {
    int fd;
    do {
        if (!name_temporary(path, temporary)) {
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

/* ---- in pieces ---- */

/* A file without a name in the folder of path; -1 where the file system has none such. */
static int create_unnamed(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) + 1 : 2;
    if (length >= PATH_MAX) {
        return -1;
    }
    memcpy(folder, slash ? path : "./", length);
    folder[length] = 0;
    return open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

static rft_status make_paths(const rft__allocator *a, const char *path, rft__writer *w, rft_error *err) {
    *w = (rft__writer){.fd = -1};
    if (strlen(path) >= PATH_MAX) {
        return io_error(err, "create", "a path of that length", ENAMETOOLONG);
    }
    w->path = rft__alloc(a, PATH_MAX, sizeof(void *));
    w->temporary = rft__alloc(a, PATH_MAX, sizeof(void *));
    if (!w->path || !w->temporary) {
        rft__writer_abandon(a, w);
        RFT_FAIL(err, RFT_E_NOMEM, "no memory to write %.99s", path);
    }
    memcpy(w->path, path, strlen(path) + 1);
    return RFT_OK;
}

rft_status rft__writer_open(const rft__allocator *a, const char *path, rft__writer *w, rft_error *err) {
    struct stat info;
    RFT_TRY(make_paths(a, path, w, err));
    int code = stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (code == 0) {
        w->fd = create_unnamed(path);
    }
    if (code == 0 && w->fd < 0) {
        w->fd = create_temporary(path, w->temporary);
        code = w->fd < 0 ? errno : 0;
    }
    if (code != 0) {
        rft__writer_abandon(a, w);
        return io_error(err, "create", path, code);
    }
    return RFT_OK;
}

rft_status rft__writer_put(rft__writer *w, const void *data, size_t size, rft_error *err) {
    return write_all(w->fd, data, size) ? RFT_OK : io_error(err, "write", w->path, errno);
}

/* Gives an unnamed file a name beside its path. */
static int name_it(rft__writer *w) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->fd);
    int code;
    do {
        code = !name_temporary(w->path, w->temporary)                                   ? errno
               : linkat(AT_FDCWD, self, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW) != 0 ? errno
                                                                                        : 0;
    } while (code == EEXIST);
    if (code != 0) {
        w->temporary[0] = 0;
    }
    return code;
}

rft_status rft__writer_commit(const rft__allocator *a, rft__writer *w, rft_error *err) {
    int code = fsync(w->fd) != 0 ? errno : 0;
    if (code == 0 && !w->temporary[0]) {
        code = name_it(w);
    }
    if (code == 0 && rename(w->temporary, w->path) != 0) {
        code = errno;
    }
    if (code == 0) {
        w->temporary[0] = 0;
    }
    const rft_status status = code == 0 ? RFT_OK : io_error(err, "write", w->path, code);
    rft__writer_abandon(a, w);
    return status;
}

void rft__writer_abandon(const rft__allocator *a, rft__writer *w) {
    if (w->fd >= 0) {
        close(w->fd);
    }
    if (w->temporary && w->temporary[0]) {
        unlink(w->temporary);
    }
    rft__release(a, w->path, PATH_MAX);
    rft__release(a, w->temporary, PATH_MAX);
    *w = (rft__writer){.fd = -1};
}
