/* A stand-in for libnvidia-ml.so.1: what the real binding is tested against where there is no card.
 *
 * FAKE_NVML names a text file of `key=value` lines, read again at every call, so a test moves the numbers while the
 * code under test runs. What the file does not say is answered NOT_SUPPORTED, as boards do.
 *   count=2                      cards
 *   0.uuid=GPU-a  0.name=...     per card; slices are 0.mig.1.uuid=...
 *   0.error=15                   every call on card 0 answers this code
 *   error.nvmlInitWithFlags=9    this call answers this code, for all cards
 *   hang=1                       every call sleeps until the line is gone
 *   xid=0:79:1                   card, code, a running number: each is delivered once
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10, BAD_VERSION = 25 };
enum { CARDS = 16, SLICES = 8, PROCESSES = 64 };
typedef int Result;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { int card, slice; } Device; /* slice -1: the card itself */

static Device cards[CARDS], slices[CARDS][SLICES];
static int users;

/* The value of a key, or NULL; good until the fourth call after this one. */
static char *look(const char *format, ...) {
    static char kept[4][512];
    static int turn;
    char key[96], line[640];
    va_list words;
    va_start(words, format);
    vsnprintf(key, sizeof key, format, words);
    va_end(words);
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return NULL;
    char *found = NULL;
    size_t size = strlen(key);
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, key, size) && line[size] == '=') {
            line[strcspn(line, "\n")] = 0;
            found = kept[turn++ % 4];
            snprintf(found, sizeof kept[0], "%s", line + size + 1);
            break;
        }
    fclose(file);
    return found;
}

static char *of(Device *device, const char *key) {
    return device->slice < 0 ? look("%d.%s", device->card, key) : look("%d.mig.%d.%s", device->card, device->slice, key);
}

static Result gate(const char *call) {
    while (look("hang")) usleep(50000);
    char *code = look("error.%s", call);
    return code ? atoi(code) : users ? OK : UNINITIALIZED;
}

static Result gate_of(Device *device, const char *call) {
    Result result = gate(call);
    if (result) return result;
    char *code = look("%d.error.%s", device->card, call);
    if (!code) code = look("%d.error", device->card);
    return code ? atoi(code) : OK;
}

#define ON(device) Result refused = gate_of(device, __func__); if (refused) return refused
#define TEXT(call, key) Result call(Device *d, char *out, u32 size) { \
    ON(d); char *v = of(d, key); if (!v) return NOT_SUPPORTED; snprintf(out, size, "%s", v); return OK; }
#define NUMBER(call, key) Result call(Device *d, u32 *out) { \
    ON(d); char *v = of(d, key); if (!v) return NOT_SUPPORTED; *out = strtoul(v, NULL, 0); return OK; }
#define PAIR(call, key) Result call(Device *d, u32 *a, u32 *b) { \
    ON(d); char *v = of(d, key); if (!v) return NOT_SUPPORTED; *a = *b = 0; sscanf(v, "%u,%u", a, b); return OK; }

Result nvmlInitWithFlags(u32 flags) {
    (void)flags;
    users++;
    Result result = gate(__func__);
    if (result) { users--; return result; }
    for (int c = 0; c < CARDS; c++) {
        cards[c] = (Device){c, -1};
        for (int s = 0; s < SLICES; s++) slices[c][s] = (Device){c, s};
    }
    return OK;
}
Result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Result nvmlShutdown(void) { if (users) users--; return OK; }
const char *nvmlErrorString(Result code) {
    return code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : code == 999 ? "Unknown Error" : "an error";
}

static Result system_text(const char *call, const char *key, char *out, u32 size) {
    Result result = gate(call);
    if (result) return result;
    char *value = look("%s", key);
    if (!value) return NOT_SUPPORTED;
    snprintf(out, size, "%s", value);
    return OK;
}
Result nvmlSystemGetDriverVersion(char *out, u32 size) { return system_text(__func__, "driver", out, size); }
Result nvmlSystemGetNVMLVersion(char *out, u32 size) { return system_text(__func__, "driver", out, size); }
Result nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 12040; return gate(__func__); }

Result nvmlDeviceGetCount_v2(u32 *out) {
    Result result = gate(__func__);
    char *value = look("count");
    *out = value ? atoi(value) : 0;
    return result;
}
Result nvmlDeviceGetHandleByIndex_v2(u32 index, Device **out) {
    *out = &cards[index % CARDS];
    return gate_of(*out, __func__);
}
Result nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    Result result = gate(__func__);
    if (result) return result;
    for (int c = 0; c < CARDS; c++) {
        char *value = look("%d.uuid", c);
        if (value && !strcmp(value, uuid)) { *out = &cards[c]; return gate_of(*out, __func__); }
    }
    return NOT_FOUND;
}
Result nvmlDeviceGetIndex(Device *d, u32 *out) { ON(d); *out = d->slice < 0 ? d->card : d->slice; return OK; }
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetName, "name")
PAIR(nvmlDeviceGetCudaComputeCapability, "capability")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
Result nvmlDeviceGetTemperature(Device *d, int sensor, u32 *out) {
    (void)sensor;
    ON(d);
    char *value = of(d, "temperature");
    if (!value) return NOT_SUPPORTED;
    *out = atoi(value);
    return OK;
}
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
Result nvmlDeviceGetPciInfo_v3(Device *d, Pci *out) {
    ON(d);
    memset(out, 0, sizeof *out);
    out->bus = d->card + 1;
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return OK;
}

/* MiB in the file, bytes to the caller. v1 counts the driver's reserve as used, v2 shows it apart. */
typedef struct { u64 total, free, used; } Memory;
typedef struct { u32 version; u64 total, reserved, free, used; } Memory2;
typedef struct { u64 total, free, used; } Bar1;
static u64 bytes(Device *d, const char *key) { char *v = of(d, key); return v ? strtoull(v, NULL, 0) << 20 : 0; }
Result nvmlDeviceGetMemoryInfo(Device *d, Memory *out) {
    ON(d);
    if (!of(d, "total")) return NOT_SUPPORTED;
    out->total = bytes(d, "total");
    out->used = bytes(d, "used") + bytes(d, "reserved");
    out->free = out->total - out->used;
    return OK;
}
Result nvmlDeviceGetMemoryInfo_v2(Device *d, Memory2 *out) {
    ON(d);
    if (look("old_driver")) return 13; /* the symbol is there, the driver behind it is not */
    if (out->version != (sizeof(Memory2) | 2u << 24)) return BAD_VERSION;
    if (!of(d, "total")) return NOT_SUPPORTED;
    out->total = bytes(d, "total");
    out->reserved = bytes(d, "reserved");
    out->used = bytes(d, "used");
    out->free = out->total - out->used - out->reserved;
    return OK;
}
Result nvmlDeviceGetBAR1MemoryInfo(Device *d, Bar1 *out) { ON(d); *out = (Bar1){1 << 28, 1 << 28, 0}; return OK; }
Result nvmlDeviceGetUtilizationRates(Device *d, u32 *out) {
    ON(d);
    char *value = of(d, "util");
    if (!value) return NOT_SUPPORTED;
    out[0] = out[1] = 0;
    sscanf(value, "%u,%u", out, out + 1);
    return OK;
}

/* Health */
PAIR(nvmlDeviceGetEccMode, "ecc_mode")
Result nvmlDeviceGetTotalEccErrors(Device *d, int kind, int counter, u64 *out) {
    ON(d);
    char *value = of(d, kind == 1 && counter == 0 ? "uncorrected" : "corrected");
    if (!value) return NOT_SUPPORTED;
    *out = strtoull(value, NULL, 0);
    return OK;
}
Result nvmlDeviceGetRemappedRows(Device *d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    ON(d);
    char *value = of(d, "remapped");
    if (!value) return NOT_SUPPORTED;
    sscanf(value, "%u,%u,%u,%u", corrected, uncorrected, pending, failed);
    return OK;
}
Result nvmlDeviceGetP2PStatus(Device *a, Device *b, int what, int *out) {
    (void)what;
    ON(a);
    char *value = look("link.%d.%d", a->card < b->card ? a->card : b->card, a->card < b->card ? b->card : a->card);
    *out = value ? atoi(value) : 3; /* not supported */
    return OK;
}

/* Processes: `0.processes=4242:17000,4243:-1` MiB; -1 is "not available" */
typedef struct { u32 pid; u64 used; u32 gpu_instance, compute_instance; } Process;
static Result processes(Device *d, const char *call, const char *key, u32 *count, Process *out) {
    Result result = gate_of(d, call);
    if (result) return result;
    Process found[PROCESSES];
    u32 n = 0;
    char *value = of(d, key);
    for (char *word = value ? strtok(value, ",") : NULL; word && n < PROCESSES; word = strtok(NULL, ",")) {
        long long mib = 0;
        u32 pid = 0;
        sscanf(word, "%u:%lld", &pid, &mib);
        found[n++] = (Process){pid, mib < 0 ? ~0ull : (u64)mib << 20, ~0u, ~0u};
    }
    u32 room = *count;
    *count = n;
    if (room < n) return TOO_SMALL;
    memcpy(out, found, n * sizeof(Process));
    return OK;
}
#define LIST(call, key) Result call(Device *d, u32 *count, Process *out) { return processes(d, __func__, key, count, out); }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, "processes")
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

/* Events */
typedef struct { int seen, watched[CARDS]; } EventSet;
typedef struct { Device *device; u64 kind, data; u32 gpu_instance, compute_instance; } Event;
Result nvmlEventSetCreate(EventSet **out) { *out = calloc(1, sizeof(EventSet)); return gate(__func__); }
Result nvmlEventSetFree(EventSet *set) { free(set); return OK; }
NUMBER(nvmlDeviceGetSupportedEventTypes_, "events")
Result nvmlDeviceGetSupportedEventTypes(Device *d, u64 *out) { u32 kinds = 0; Result r = nvmlDeviceGetSupportedEventTypes_(d, &kinds); *out = kinds; return r; }
Result nvmlDeviceRegisterEvents(Device *d, u64 kinds, EventSet *set) {
    (void)kinds;
    ON(d);
    if (!of(d, "events")) return NOT_SUPPORTED;
    set->watched[d->card] = 1;
    return OK;
}
Result nvmlEventSetWait_v2(EventSet *set, Event *out, u32 wait_ms) {
    Result result = gate(__func__);
    if (result) return result;
    char *value = look("xid");
    int card, code, turn;
    if (value && sscanf(value, "%d:%d:%d", &card, &code, &turn) == 3 && turn > set->seen && set->watched[card]) {
        set->seen = turn;
        *out = (Event){&cards[card], 8, code, ~0u, ~0u};
        return OK;
    }
    usleep(wait_ms * 1000);
    return TIMEOUT;
}

/* Slices */
PAIR(nvmlDeviceGetMigMode, "mig_mode")
Result nvmlDeviceGetMaxMigDeviceCount(Device *d, u32 *out) {
    ON(d);
    *out = look("%d.mig_mode", d->card) ? SLICES : 0;
    return OK;
}
Result nvmlDeviceGetMigDeviceHandleByIndex(Device *d, u32 index, Device **out) {
    ON(d);
    if (index >= SLICES || !look("%d.mig.%u.uuid", d->card, index)) return NOT_FOUND;
    *out = &slices[d->card][index];
    return OK;
}
Result nvmlDeviceIsMigDeviceHandle(Device *d, u32 *out) { ON(d); *out = d->slice >= 0; return OK; }
Result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *d, Device **out) { ON(d); *out = &cards[d->card]; return OK; }
Result nvmlDeviceGetGpuInstanceId(Device *d, u32 *out) { ON(d); *out = d->slice + 1; return OK; }
Result nvmlDeviceGetComputeInstanceId(Device *d, u32 *out) { ON(d); *out = 0; return OK; }
