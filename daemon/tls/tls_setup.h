// The setup that both ends of TLS share: files, ciphers, random bytes. Inside daemon/tls only.
#pragma once

#include <string>

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crl.h>
#include <mbedtls/x509_crt.h>

#include "edgecase/status.h"

namespace edgecase::tls {

// Any thread may call it.
int random_bytes(void* unused, unsigned char* bytes, std::size_t size);
std::string error_text(int error);

// Ciphers by the library's numbers, up to a zero: of those that both ends have the server takes the
// first. Where AES is not fast it is ChaCha20, which computes without tables.
const int* preferred_ciphers(bool is_aes_fast);
// TLS 1.2, ephemeral keys, authenticated encryption.
void restrict_to_safe(mbedtls_ssl_config& configuration);

// Sets the serial number of a certificate that is written: 1.
int set_first_serial(mbedtls_x509write_cert& certificate);

// Into an initialized `chain`. InvalidArgument, NotAllowed name the file.
Status read_certificates(const std::string& path, mbedtls_x509_crt& chain);
// The same of a list of revoked certificates.
Status read_revocations(const std::string& path, mbedtls_x509_crl& list);
// The same of the key that belongs to `chain`; NotAllowed too when everybody may read it.
Status read_key(const std::string& path, const std::string& certificate_path,
                const mbedtls_x509_crt& chain, mbedtls_pk_context& key);

// A certificate that a machine makes itself, for connections within it. For the name "localhost",
// on P-256, signed by itself; the key may be read by its owner alone.
Status write_own_certificate(const std::string& certificate_path, const std::string& key_path);

}  // namespace edgecase::tls
