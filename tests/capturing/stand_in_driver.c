// SPDX-License-Identifier: Apache-2.0
// A stand-in for the driver's library: enough of it that the runtime's library can be loaded on a machine without one.
// It tells of one GPU, and refuses the runtime the tables that it needs to begin.
#include <string.h>

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDeviceGetName(char* name, int size, int device) { return strncpy(name, "Stand-in", size), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { return *value = attribute == 75 ? 9 : 0, 0; }
int cuGetErrorString(int error, const char** text) { return *text = "refused", 0; }
int cuGetExportTable(const void** table, const void* name) { return 801; }
int cuCtxGetId(void* context, unsigned long long* id) { return 201; }
int cuCtxGetCurrent(void** context) { return *context = 0, 3; }
