/* What mbedtls has instead of its own AES-GCM in the portable builds (MBEDTLS_GCM_ALT): Nettle's,
 * which takes several blocks at once. TLS is made of it. The functions are declared by
 * mbedtls/gcm.h, which includes this. */
#pragma once

struct edgecase_gcm_state;

typedef struct mbedtls_gcm_context {
  struct edgecase_gcm_state* state; /* null until a key is set */
} mbedtls_gcm_context;
