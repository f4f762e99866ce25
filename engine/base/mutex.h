// The engine's old name of the face's locks, for what is still being moved.
#pragma once

#include "edgecase/mutex.h"
