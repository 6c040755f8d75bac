#include "scheduler/domain/state_machine.h"
