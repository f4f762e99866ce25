// A certificate for 127.0.0.1 and localhost that signs itself, made when a test needs it.
#pragma once

#include <string>

namespace edgecase::test {

struct TestCertificate {
  std::string certificate;  // file names
  std::string key;
};

enum class KeyKind : unsigned char { Elliptic, Rsa };
// Writes `name`.crt and `name`.key (mode 0600) into `directory`. `ends`, `begins`:
// "20991231235959".
TestCertificate make_test_certificate(const std::string& directory, const std::string& name,
                                      KeyKind kind = KeyKind::Elliptic,
                                      const char* ends = "20991231235959",
                                      const char* begins = "20000101000000");

}  // namespace edgecase::test
