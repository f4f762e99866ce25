/* AES-GCM (NIST SP 800-38D) for mbedtls, by Nettle; see gcm_alt.h. A message is sealed or opened as
 * a whole, as TLS and its tickets do; in pieces it is not offered, which mbedtls foresees of a
 * replacement. */
#include <mbedtls/constant_time.h>
#include <mbedtls/error.h>
#include <mbedtls/gcm.h>
#include <mbedtls/platform.h>
#include <mbedtls/platform_util.h>
#include <nettle/aes.h>
#include <nettle/gcm.h>

enum { kTagMinBytes = 4, kTagMaxBytes = 16 };

struct edgecase_gcm_state {
  struct gcm_key key;
  struct gcm_ctx message;
  union {
    struct aes128_ctx aes128;
    struct aes192_ctx aes192;
    struct aes256_ctx aes256;
  } cipher;
  nettle_cipher_func* encrypt;
};

void mbedtls_gcm_init(mbedtls_gcm_context* context) {
  context->state = NULL;
}

void mbedtls_gcm_free(mbedtls_gcm_context* context) {
  if (context == NULL || context->state == NULL) return;
  mbedtls_platform_zeroize(context->state, sizeof *context->state);
  mbedtls_free(context->state);
  context->state = NULL;
}

int mbedtls_gcm_setkey(mbedtls_gcm_context* context, mbedtls_cipher_id_t cipher,
                       const unsigned char* key, unsigned int key_bits) {
  struct edgecase_gcm_state* state;

  if (cipher != MBEDTLS_CIPHER_ID_AES) return MBEDTLS_ERR_GCM_BAD_INPUT;
  if (key_bits != 128 && key_bits != 192 && key_bits != 256) return MBEDTLS_ERR_GCM_BAD_INPUT;
  if (context->state == NULL) context->state = mbedtls_calloc(1, sizeof *context->state);
  state = context->state;
  if (state == NULL) return MBEDTLS_ERR_CIPHER_ALLOC_FAILED;
  switch (key_bits) {
    case 128:
      aes128_set_encrypt_key(&state->cipher.aes128, key);
      state->encrypt = (nettle_cipher_func*)aes128_encrypt;
      break;
    case 192:
      aes192_set_encrypt_key(&state->cipher.aes192, key);
      state->encrypt = (nettle_cipher_func*)aes192_encrypt;
      break;
    default:
      aes256_set_encrypt_key(&state->cipher.aes256, key);
      state->encrypt = (nettle_cipher_func*)aes256_encrypt;
      break;
  }
  gcm_set_key(&state->key, &state->cipher, state->encrypt);
  return 0;
}

static int check(const mbedtls_gcm_context* context, size_t nonce_bytes, size_t tag_bytes) {
  if (context->state == NULL || nonce_bytes == 0) return MBEDTLS_ERR_GCM_BAD_INPUT;
  if (tag_bytes < kTagMinBytes || tag_bytes > kTagMaxBytes) return MBEDTLS_ERR_GCM_BAD_INPUT;
  return 0;
}

static void begin(struct edgecase_gcm_state* state, const unsigned char* nonce, size_t nonce_bytes,
                  const unsigned char* associated, size_t associated_bytes) {
  gcm_set_iv(&state->message, &state->key, nonce_bytes, nonce);
  if (associated_bytes > 0) {
    gcm_update(&state->message, &state->key, associated_bytes, associated);
  }
}

static void open_all(struct edgecase_gcm_state* state, size_t bytes, const unsigned char* in,
                     unsigned char* out, size_t tag_bytes, unsigned char* tag) {
  if (bytes > 0) {
    gcm_decrypt(&state->message, &state->key, &state->cipher, state->encrypt, bytes, out, in);
  }
  gcm_digest(&state->message, &state->key, &state->cipher, state->encrypt, tag_bytes, tag);
}

int mbedtls_gcm_crypt_and_tag(mbedtls_gcm_context* context, int mode, size_t bytes,
                              const unsigned char* nonce, size_t nonce_bytes,
                              const unsigned char* associated, size_t associated_bytes,
                              const unsigned char* in, unsigned char* out, size_t tag_bytes,
                              unsigned char* tag) {
  struct edgecase_gcm_state* const state = context->state;
  const int error = check(context, nonce_bytes, tag_bytes);

  if (error != 0) return error;
  begin(state, nonce, nonce_bytes, associated, associated_bytes);
  if (mode == MBEDTLS_GCM_DECRYPT) {
    open_all(state, bytes, in, out, tag_bytes, tag);
    return 0;
  }
  if (bytes > 0) {
    gcm_encrypt(&state->message, &state->key, &state->cipher, state->encrypt, bytes, out, in);
  }
  gcm_digest(&state->message, &state->key, &state->cipher, state->encrypt, tag_bytes, tag);
  return 0;
}

/* What does not open is wiped: nobody is to see what may be somebody else's. */
int mbedtls_gcm_auth_decrypt(mbedtls_gcm_context* context, size_t bytes, const unsigned char* nonce,
                             size_t nonce_bytes, const unsigned char* associated,
                             size_t associated_bytes, const unsigned char* tag, size_t tag_bytes,
                             const unsigned char* in, unsigned char* out) {
  unsigned char computed[kTagMaxBytes];
  const int error = check(context, nonce_bytes, tag_bytes);

  if (error != 0) return error;
  begin(context->state, nonce, nonce_bytes, associated, associated_bytes);
  open_all(context->state, bytes, in, out, tag_bytes, computed);
  if (mbedtls_ct_memcmp(computed, tag, tag_bytes) == 0) return 0;
  if (bytes > 0) mbedtls_platform_zeroize(out, bytes);
  return MBEDTLS_ERR_GCM_AUTH_FAILED;
}

int mbedtls_gcm_starts(mbedtls_gcm_context* context, int mode, const unsigned char* nonce,
                       size_t nonce_bytes) {
  (void)context, (void)mode, (void)nonce, (void)nonce_bytes;
  return MBEDTLS_ERR_PLATFORM_FEATURE_UNSUPPORTED;
}

int mbedtls_gcm_update_ad(mbedtls_gcm_context* context, const unsigned char* associated,
                          size_t associated_bytes) {
  (void)context, (void)associated, (void)associated_bytes;
  return MBEDTLS_ERR_PLATFORM_FEATURE_UNSUPPORTED;
}

int mbedtls_gcm_update(mbedtls_gcm_context* context, const unsigned char* in, size_t bytes,
                       unsigned char* out, size_t out_bytes, size_t* written) {
  (void)context, (void)in, (void)bytes, (void)out, (void)out_bytes;
  *written = 0;
  return MBEDTLS_ERR_PLATFORM_FEATURE_UNSUPPORTED;
}

int mbedtls_gcm_finish(mbedtls_gcm_context* context, unsigned char* out, size_t out_bytes,
                       size_t* written, unsigned char* tag, size_t tag_bytes) {
  (void)context, (void)out, (void)out_bytes, (void)tag, (void)tag_bytes;
  *written = 0;
  return MBEDTLS_ERR_PLATFORM_FEATURE_UNSUPPORTED;
}
