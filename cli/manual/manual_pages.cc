#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "application.h"
#include "config/configuration.h"
#include "config/settings.h"
#include "daemon_client.h"
#include "manual/command_tree.h"
#include "output.h"
#include "reading_output.h"
#include "wire/contract.h"
#include "wire/selector.h"

namespace edgecase::cli {
namespace {

// What as many commands take as this is explained once.
constexpr std::ptrdiff_t kCommonFrom = 6;
constexpr std::string_view kSettingsGroup = "Settings";

// Text that roff prints as it is; a line that begins with a dot is no request.
std::string roff_escaped(std::string_view text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    line_start = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + roff_escaped(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + roff_escaped(text) + "\\fR";
}

std::string heading(std::string_view title) {
  return ".SH " + std::string(title) + "\n";
}

std::string title_line(std::string_view name, std::string_view section, std::string_view manual) {
  return ".TH " + std::string(name) + " " + std::string(section) + " \"\" \"EdgeCase " +
         std::string(wire::version()) + "\" \"" + std::string(manual) + "\"\n";
}

std::string item(const std::string& tag, std::string_view text) {
  return ".TP\n" + tag + "\n" + roff_escaped(text) + "\n";
}

std::string see_also(std::initializer_list<std::pair<std::string_view, int>> pages) {
  std::string text;
  for (const auto& [name, section] : pages) {
    if (!text.empty()) text += ", ";
    text += bold(name) + "(" + std::to_string(section) + ")";
  }
  return heading("SEE ALSO") + text + "\n";
}

std::string option_item(const CommandOption& option) {
  std::string tag;
  for (const std::string& name : option.names) {
    if (!tag.empty()) tag += ", ";
    tag += option.positional ? italic(name) : bold(name);
  }
  if (!option.positional && !option.value.empty()) {
    if (option.choices.empty()) {
      tag += " " + italic(option.value);
    } else {
      for (const std::string& choice : option.choices) {
        tag += (&choice == &option.choices.front() ? " " : "|") + bold(choice);
      }
    }
  }
  return item(tag, option.help);
}

// "edgecase query [OPTIONS] selector"
std::string usage(const Command& command) {
  std::string text = bold(command.path);
  if (!command.commands.empty()) return text + " " + italic("COMMAND");
  if (std::any_of(command.options.begin(), command.options.end(),
                  [](const CommandOption& option) { return !option.positional; })) {
    text += " [" + italic("OPTIONS") + "]";
  }
  for (const CommandOption& option : command.options) {
    if (!option.positional) continue;
    const std::string word = italic(option.names.front()) + (option.repeated ? " ..." : "");
    text += option.required ? " " + word : " [" + word + "]";
  }
  return text;
}

std::vector<CommandOption> common_options(const std::vector<const Command*>& commands) {
  std::vector<CommandOption> common;
  for (const Command* command : commands) {
    for (const CommandOption& option : command->options) {
      if (option.positional || option.group == kSettingsGroup ||
          std::find(common.begin(), common.end(), option) != common.end()) {
        continue;
      }
      const auto takes_it = [&option](const Command* other) {
        return std::find(other->options.begin(), other->options.end(), option) !=
               other->options.end();
      };
      if (std::count_if(commands.begin(), commands.end(), takes_it) >= kCommonFrom) {
        common.push_back(option);
      }
    }
  }
  return common;
}

std::string command_section(const Command& command, const std::vector<CommandOption>& common) {
  std::string out = ".SS " + usage(command) + "\n" + roff_escaped(command.summary) + ".\n";
  bool has_settings = false;
  std::string shared;
  for (const CommandOption& option : command.options) {
    if (option.group == kSettingsGroup) {
      has_settings = true;
    } else if (std::find(common.begin(), common.end(), option) != common.end()) {
      if (!shared.empty()) shared += ", ";
      shared += bold(option.names.back());
    } else {
      out += option_item(option);
    }
  }
  if (!shared.empty()) out += ".PP\nAlso " + shared + ": see COMMON OPTIONS.\n";
  if (has_settings) {
    out += ".PP\nAlso each setting of " + bold("edgecase.toml") + "(5) as an option.\n";
  }
  if (!command.notes.empty()) out += ".PP\n.nf\n" + roff_escaped(command.notes) + ".fi\n";
  if (!command.examples.empty()) {
    out += ".PP\n.nf\n";
    for (const std::string& example : command.examples) out += roff_escaped(example) + "\n";
    out += ".fi\n";
  }
  return out;
}

std::string kind_text(const config::Setting& setting) {
  switch (setting.kind) {
    case config::SettingKind::Choice: return std::string(setting.choices);
    case config::SettingKind::Duration: return "duration, as in 15m or 30d, or forever";
    case config::SettingKind::Keeping:
      return "duration, or forever, and tiers: 7d then 1m:90d then 1h:forever";
    case config::SettingKind::Size: return "size, as in 64MiB";
    case config::SettingKind::Number:
      return "number, " + std::to_string(setting.minimum) + " to " +
             std::to_string(setting.maximum);
    case config::SettingKind::Flag: return "true|false";
    case config::SettingKind::File: return "file, or credential:NAME";
    case config::SettingKind::List: return "list of texts, or one text with commas between";
    case config::SettingKind::Text: break;
  }
  return "text";
}

}  // namespace

std::string edgecase_page(const Command& root) {
  const std::vector<const Command*> commands = all_commands(root);
  const std::vector<CommandOption> common = common_options(commands);
  std::string out = title_line("EDGECASE", "1", "User Commands");
  out += heading("NAME") + "edgecase \\- data store for sensor readings on the edge\n";
  out += heading("SYNOPSIS") + usage(root) + "\n";
  out +=
      heading("DESCRIPTION") + bold("edgecase") + " talks to the EdgeCase daemon, " +
      bold("edgecased") +
      "(8): it writes, queries and exports readings, shows the daemon\\(aqs state and looks "
      "after its store.\n.PP\nA reading belongs to a series, " +
      italic("device") + "/" + italic("sensor") +
      ", inside a namespace. A selector names series with the globs * and ?; a device alone "
      "means all of its sensors. Of several what any of them matches is meant; "
      "\\-\\-measurement, \\-\\-tag and \\-\\-field narrow it to what series were called where "
      "they "
      "came from. Times are RFC 3339, a date alone, @ and Unix seconds, "
      "\\(dqnow\\(dq, or relative as in \\-15m or \\-7d; durations take the units ns us ms s m h d "
      "w.\n.PP\nData goes to standard output, messages, progress and errors to standard "
      "error.\n";
  out += heading("COMMANDS");
  for (const Command* command : commands) {
    if (command->commands.empty()) out += command_section(*command, common);
  }
  out += heading("COMMON OPTIONS");
  for (const CommandOption& option : common) out += option_item(option);
  out += item(bold("--help"), "Explain a command, with an example.");
  out += heading("EXIT STATUS") + roff_escaped(kExitCodesText) + "\n";
  out += heading("ENVIRONMENT");
  out += item(bold("EDGECASE_HOST"), "The daemon, as --host has it.");
  out += item(bold("EDGECASE_TOKEN"), "The token, as --token has it.");
  out += item(bold("EDGECASE_TLS_CA"), "Certificates to trust, as --tls-ca has it.");
  out += item(bold("EDGECASE_NAMESPACE"), "The namespace, as --namespace has it.");
  out += item(bold("EDGECASE_HTTP_SOCKET"), "The daemon's Unix socket, as --socket has it.");
  out += heading("FILES");
  out += item(italic(config::kDefaultFile),
              "The configuration of the daemon, which also says where its socket is.");
  return out + see_also({{"edgecased", 8}, {"edgecase.toml", 5}});
}

std::string edgecased_page(const Command& root) {
  std::string out = title_line("EDGECASED", "8", "System Administration");
  out += heading("NAME") + "edgecased \\- the EdgeCase daemon\n";
  out += heading("SYNOPSIS") + bold("edgecased") + " [" + italic("OPTIONS") + "]\n";
  out += heading("DESCRIPTION") + bold("edgecased") +
         " takes sensor readings over MQTT and HTTP, keeps them durably on two drives and answers "
         "queries. It is " +
         bold("edgecase serve") +
         " by another name and stays in the foreground; systemd runs it as " +
         bold("edgecased.service") +
         ".\n.PP\nWhat is acknowledged has been synced: an end without warning loses none of it. "
         "One daemon uses a store at a time.\n";
  out += heading("OPTIONS");
  for (const Command* command : all_commands(root)) {
    if (command->path != "edgecase serve") continue;
    for (const CommandOption& option : command->options) {
      if (option.group != kSettingsGroup) out += option_item(option);
    }
  }
  out += item("\\fB\\-\\-\\fIKEY VALUE\\fR",
              "Each setting of edgecase.toml(5), as in --storage.values /mnt/ssd. It stands above "
              "the environment, and that above the file.");
  out += heading("SIGNALS");
  out += item("SIGTERM, SIGINT", "Take no more readings, finish what is under way, end.");
  out += heading("EXIT STATUS") + roff_escaped(kExitCodesText) + "\n";
  out += heading("FILES");
  out += item(italic(config::kDefaultFile), "The configuration.");
  const config::Settings defaults;
  out += item(italic(defaults.storage.metadata), "Keys, filters, write-ahead log, catalog.");
  out += item(italic(defaults.storage.values), "Values.");
  out += item(italic(defaults.http.socket), "The Unix socket; members of its group may use it.");
  return out + see_also({{"edgecase", 1}, {"edgecase.toml", 5}, {"systemd.service", 5}});
}

std::string configuration_page() {
  std::string out = title_line("EDGECASE.TOML", "5", "File Formats");
  out += heading("NAME") + "edgecase.toml \\- configuration of the EdgeCase daemon\n";
  out += heading("SYNOPSIS") + italic(config::kDefaultFile) + "\n";
  out += heading("DESCRIPTION") + "A TOML file. The setting " + bold("storage.values") + " is " +
         bold("values") + " in the table " + bold("[storage]") + " of the file, " +
         bold("EDGECASE_STORAGE_VALUES") + " in the environment and " + bold("--storage.values") +
         " on the command line; the command line stands above the environment, and that above the "
         "file. An unknown key is an error, and so is a file that everybody may write, or that "
         "belongs to somebody other than root, who runs the daemon, and the user edgecase.\n.PP\n" +
         bold("edgecase config example") + " prints a file with every setting, " +
         bold("edgecase config check") + " finds mistakes in one, " + bold("edgecase config show") +
         " tells what is in effect and why.\n.PP\nWhere a file is meant, " + bold("credential:") +
         italic("NAME") + " is the one that systemd hands to the service alone as " +
         italic("NAME") + ", with " + bold("LoadCredential=") + " or " +
         bold("LoadCredentialEncrypted=") +
         "; an example is in /usr/share/doc/edgecase/examples.\n";
  const config::Settings defaults;
  std::string_view section;
  for (const config::Setting& setting : config::settings_table()) {
    if (setting.section() != section) {
      section = setting.section();
      out += heading("TABLE [" + std::string(section) + "]");
    }
    const std::string value = config::toml_text(setting, defaults);
    std::string text(setting.help);
    text += "\nIs: " + kind_text(setting) + ". Default: " + value + ".";
    if (setting.support != config::Support::Full) {
      text += "\nFor now: " + std::string(setting.support_note) + ".";
    }
    out += item(bold(setting.key), text);
  }
  out += heading("TABLES [[mqtt.rule]]") +
         "Which topics are read, and what becomes of a message: the first rule that matches is "
         "used. Without any, the topic " +
         bold(config::kDefaultTopic) + " is read.\n";
  for (const config::RuleKey& key : config::rule_keys()) out += item(bold(key.name), key.help);
  out += heading("TABLES [[influx.rule]]") +
         "Which device a line of line protocol belongs to: the first rule that matches is used. A "
         "line has the measurement, and every tag that the device's name has in braces.\n" +
         item(bold("measurement"), config::kMeasurementHelp) +
         item(bold("device"), config::kLineDeviceHelp);
  return out + see_also({{"edgecase", 1}, {"edgecased", 8}});
}

namespace {

// The text is made while the declarations are there to be read; they are gone when it is printed.
void print_later(std::string text, Action& action) {
  action = [text = std::move(text)] {
    write_out(stdout, text);
    return finish_stdout();
  };
}

void add_script(CLI::App& command, const CLI::App& app, const char* shell, const char* place,
                std::string (*script)(const Command&), Action& action) {
  CLI::App* one = command.add_subcommand(shell, std::string("Print the script for ") + shell);
  one->footer(help_footer({std::string("edgecase completion ") + shell + " > " + place}));
  one->callback([&app, script, &action] { print_later(script(read_command_tree(app)), action); });
}

// Devices, each with a slash behind it where a selector goes on, and series of the running daemon.
struct NameArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string word;
  bool devices = false;
};

// A shell offers no more than somebody looks through.
constexpr std::size_t kNamesOffered = 500;
constexpr int kPagesMax = 4;

// Nothing is said where no daemon answers: somebody is typing.
int run_names(const NameArguments& arguments) {
  const std::size_t slash = arguments.word.find('/');
  const bool is_sensor = slash != std::string::npos && !arguments.devices;
  const std::string device = wire::unescape_name(arguments.word.substr(0, slash));
  const std::string sensor =
      is_sensor ? wire::unescape_name(arguments.word.substr(slash + 1)) : std::string();
  DaemonClient client(arguments.connection);
  std::set<std::string> names;
  std::string offset = "0";
  for (int page = 0; page < kPagesMax && names.size() < kNamesOffered; ++page) {
    const Result<std::string> body =
        client.get_small(path_with(wire::routes::kFind, {{"ns", arguments.namespaces.parameter()},
                                                         {"q", device},
                                                         {"limit", std::to_string(kNamesOffered)},
                                                         {"offset", offset}}));
    if (!body.ok()) break;
    const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
    if (!document.is_object()) break;
    for (const nlohmann::json& each : document.value("found", nlohmann::json::array())) {
      const std::string found = text_field(each, "device");
      if (is_sensor) {
        const std::string name = text_field(each, "sensor");
        if (found == device && name.starts_with(sensor))
          names.insert(wire::escape_name(found) + "/" + wire::escape_name(name));
      } else if (found.starts_with(device)) {
        names.insert(wire::escape_name(found) + (arguments.devices ? "" : "/"));
      }
    }
    const auto next = document.find("next");
    if (next == document.end() || !next->is_number_unsigned()) break;
    offset = std::to_string(next->get<std::uint64_t>());
  }
  for (const std::string& name : names) {
    // A line is a name.
    if (printable(name) == name) write_out(stdout, name + "\n");
  }
  static_cast<void>(finish_stdout());
  return wire::kExitOk;
}

void add_names(CLI::App& command, Action& action) {
  const auto arguments = std::make_shared<NameArguments>();
  CLI::App* names =
      command.add_subcommand("names", "Print devices and series that begin so")->group("");
  names->add_option("word", arguments->word, "What is typed already");
  names->add_flag("--devices", arguments->devices, "Devices alone");
  add_namespace_options(*names, arguments->namespaces, AllNamespaces::Allowed);
  add_connection_options(*names, arguments->connection);
  names->footer(help_footer({"edgecase completion names kit"}));
  names->callback([arguments, &action] { action = [arguments] { return run_names(*arguments); }; });
}

}  // namespace

void add_completion_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("completion", "Print what teaches a shell to complete");
  command->require_subcommand(1);
  command->footer(help_footer(
      {"edgecase completion bash > ~/.local/share/bash-completion/completions/edgecase"}));
  add_script(*command, app, "bash", "/etc/bash_completion.d/edgecase", bash_completion, action);
  add_script(*command, app, "zsh", "/usr/local/share/zsh/site-functions/_edgecase", zsh_completion,
             action);
  add_script(*command, app, "fish", "~/.config/fish/completions/edgecase.fish", fish_completion,
             action);
  add_names(*command, action);
}

// For the package: what `man edgecase` shows.
void add_manual_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("manual", "Print a manual page in roff")->group("");
  command->require_subcommand(1);
  command->footer(help_footer({"edgecase manual edgecase.1 | man -l -"}));
  command->add_subcommand("edgecase.1", "The commands")->callback([&app, &action] {
    print_later(edgecase_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecased.8", "The daemon")->callback([&app, &action] {
    print_later(edgecased_page(read_command_tree(app)), action);
  });
  command->add_subcommand("edgecase.toml.5", "The configuration")->callback([&action] {
    print_later(configuration_page(), action);
  });
}

}  // namespace edgecase::cli
