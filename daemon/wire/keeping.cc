#include "wire/keeping.h"

#include "wire/time_text.h"

namespace edgecase::wire {
namespace {

constexpr std::string_view kForever = "forever";

std::string keep_words(std::int64_t keep_ns) {
  return keep_ns == kRetentionForever ? std::string(kForever) : format_duration(keep_ns);
}

Status check_tier(const Tier& tier, const Tier* before, const Tier& first) {
  const std::string every = format_duration(tier.every_ns);
  if (tier.every_ns <= 0 || tier.every_ns % kTierEveryMinNs != 0)
    return invalid_argument("windows of a tier are whole seconds, not " + every);
  if (before == nullptr) return ok();
  if (tier.every_ns <= before->every_ns || tier.every_ns % before->every_ns != 0) {
    return invalid_argument("windows of " + every +
                            " are no multiple of those of the tier before, " +
                            format_duration(before->every_ns));
  }
  if (tier.every_ns / first.every_ns > kTierRatioMax) {
    return invalid_argument("a window of " + every + " would hold more than " +
                            std::to_string(kTierRatioMax) +
                            " of the first tier's: use a tier in "
                            "between as the first one");
  }
  return ok();
}

}  // namespace

Result<std::int64_t> parse_keep_ns(std::string_view text) {
  if (text == kForever) return kRetentionForever;
  const Result<std::int64_t> keep_ns = parse_duration_ns(text);
  if (!keep_ns.ok() || *keep_ns == 0) {
    return invalid_argument("\"" + std::string(text) +
                            "\" is not a duration, use 30d, 12h, 90m or forever");
  }
  return keep_ns;
}

Result<Tier> parse_tier(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return invalid_argument("\"" + std::string(text) +
                            "\" is no tier, use how long a window is and how long it is kept: "
                            "1m:90d, 1h:forever");
  }
  EC_ASSIGN_OR_RETURN(const std::int64_t every_ns, parse_duration_ns(text.substr(0, colon)));
  EC_ASSIGN_OR_RETURN(const std::int64_t keep_ns, parse_keep_ns(text.substr(colon + 1)));
  return Tier{every_ns, keep_ns};
}

Result<std::vector<Tier>> parse_tiers(std::string_view text) {
  std::vector<Tier> tiers;
  if (text.empty()) return tiers;
  while (tiers.size() <= kTiersMax) {  // check_keeping() says that there are too many
    const std::size_t end = text.find(',');
    EC_ASSIGN_OR_RETURN(const Tier tier, parse_tier(text.substr(0, end)));
    tiers.push_back(tier);
    if (end == std::string_view::npos) break;
    text = text.substr(end + 1);
  }
  return tiers;
}

Result<Keeping> parse_keeping(std::string_view text) {
  constexpr std::string_view kThen = " then ";
  Keeping keeping;
  std::size_t end = text.find(kThen);
  EC_ASSIGN_OR_RETURN(keeping.raw_ns, parse_keep_ns(text.substr(0, end)));
  while (end != std::string_view::npos && keeping.tiers.size() <= kTiersMax) {
    text = text.substr(end + kThen.size());
    end = text.find(kThen);
    EC_ASSIGN_OR_RETURN(const Tier tier, parse_tier(text.substr(0, end)));
    keeping.tiers.push_back(tier);
  }
  EC_TRY(check_keeping(keeping));
  return keeping;
}

Status check_keeping(const Keeping& keeping) {
  if (keeping.raw_ns <= 0) return invalid_argument("a retention of nothing erases what comes");
  if (keeping.tiers.size() > kTiersMax)
    return invalid_argument("a rule has " + std::to_string(kTiersMax) + " tiers at most");
  std::int64_t kept_ns = keeping.raw_ns;
  const Tier* before = nullptr;
  for (const Tier& tier : keeping.tiers) {
    if (kept_ns == kRetentionForever)
      return invalid_argument("what is kept forever never becomes a tier");
    EC_TRY(check_tier(tier, before, keeping.tiers.front()));
    if (tier.keep_ns <= kept_ns) {
      return invalid_argument("the tier " + tier_text(tier) +
                              " is not kept longer than what comes before it, " +
                              keep_words(kept_ns));
    }
    kept_ns = tier.keep_ns;
    before = &tier;
  }
  return ok();
}

std::string tier_text(const Tier& tier) {
  return format_duration(tier.every_ns) + ":" + keep_words(tier.keep_ns);
}

std::string tiers_text(const std::vector<Tier>& tiers) {
  std::string text;
  for (const Tier& tier : tiers) {
    if (!text.empty()) text += ',';
    text += tier_text(tier);
  }
  return text;
}

std::string keeping_text(const Keeping& keeping) {
  std::string text = keep_words(keeping.raw_ns);
  for (const Tier& tier : keeping.tiers) text += " then " + tier_text(tier);
  return text;
}

}  // namespace edgecase::wire
