/* Checksums that the program prints and compares: SHA-256 (FIPS 180-4) and the CRC-32 of zlib. */
#ifndef EXPHIL_CLI_DIGEST_H
#define EXPHIL_CLI_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* 64 hexadecimal digits and a 0. */
void digest_sha256(const void *data, size_t bytes, char text[65]);
uint32_t digest_crc32(const void *data, size_t bytes);

#endif
